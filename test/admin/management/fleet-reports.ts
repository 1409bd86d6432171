/** Creates the reports that the processes of a fleet store, for tests. */
import type { Figures, ProcessReport, StoredReport } from "../../../src/core/store/fleet.ts";

export const noFigures: Figures = {
  inputTokensPerSecond: 0,
  outputTokensPerSecond: 0,
  requestsPerSecond: 0,
  failuresPerSecond: 0,
  running: 0,
  waiting: 0,
  firstParts: [],
};

type Fields = Partial<Omit<ProcessReport, "node" | "figures">> & { startedAt?: Date; figures?: Partial<Figures> };

/** The report of a process that is a node on its own. */
export function reportOf({ startedAt = new Date(0), figures = {}, ...fields }: Fields): ProcessReport {
  return {
    node: { id: Bun.randomUUIDv7(), startedAt },
    worker: 0,
    name: "gateway-1:8080",
    version: "1.2.3",
    configuration: "7d9f3c1a2b4e5f60",
    workersWanted: 1,
    isDraining: false,
    problems: [],
    engines: [],
    enginesLeftOut: 0,
    ...fields,
    figures: { ...noFigures, ...figures },
  };
}

export function storedReport({ age_ms = 500, ...fields }: Fields & { age_ms?: number }): StoredReport {
  return { ...reportOf(fields), age_ms };
}
