/** Reads the log of a running Sluice. A line arrives shortly after the event that it reports, so tests wait for it. */
import type { Sluice } from "./sluice.ts";
import { until } from "./until.ts";

export type Logging = Pick<Sluice, "stderr">;

// biome-ignore lint/suspicious/noExplicitAny: each event has other fields, which the tests check.
export type LogLine = { event: string } & Record<string, any>;

/** The complete log lines, parsed as JSON: those of one event, or all. */
export function linesOf({ stderr }: Logging, event?: string): LogLine[] {
  const whole = stderr().split("\n").slice(0, -1);
  const lines = whole.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as LogLine);
  return event === undefined ? lines : lines.filter((line) => line.event === event);
}

/** Waits for a line that has these fields, and returns the first one. */
export async function lineOf(service: Logging, fields: Record<string, unknown>): Promise<LogLine> {
  const found = () =>
    linesOf(service).find((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
  await until(() => found() !== undefined, 60_000, `a line of the log with ${JSON.stringify(fields)}`);
  return found()!;
}

/** Waits for at least `count` lines of an event, and returns all of them. */
export async function linesThen(service: Logging, event: string, count: number): Promise<LogLine[]> {
  await until(() => linesOf(service, event).length >= count, 60_000, `${count} lines of ${event}`);
  return linesOf(service, event);
}
