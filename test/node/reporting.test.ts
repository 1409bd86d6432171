/**
 * A process stores a report of its state at its start, every two seconds, and soon after a change, but never after it
 * has stopped.
 */
import { expect, test } from "bun:test";
import type { CheckResult } from "../../src/core/operations/dependencies.ts";
import { Drained } from "../../src/core/routing/replicas.ts";
import type { ProcessReport } from "../../src/core/store/fleet.ts";
import { instruments } from "../../src/features/telemetry/registry.ts";
import { type Reported, startReporting } from "../../src/node/reporting.ts";
import { VirtualClock } from "../core/admission/virtual-time.ts";

function started() {
  const clock = new VirtualClock();
  const reports: ProcessReport[] = [];
  const left: [string, number][] = [];
  const failures: unknown[] = [];
  const drained = new Drained();
  const now = { hash: "a", results: [] as CheckResult[], draining: false, isAway: false };
  const identity = { id: Bun.randomUUIDv7(), startedAt: new Date(0) };
  const seen = Array.from({ length: 300 }, (_, at) => ({
    ...{ upstream: `gpu-${at}`, replica: null, states: { closed: 1 }, requests: 1, tokens: 10, waiting: 0 },
  }));
  const parts: Reported = {
    identity,
    member: { number: 2, workers: 3 },
    version: "1.2.3",
    url: "https://localhost",
    certificateExpiresAt: () => new Date("2026-12-31T00:00:00Z"),
    configuration: { hash: () => now.hash },
    readiness: { results: () => now.results },
    lifecycle: now,
    engines: { seen: () => seen, drained, queues: { waiting: () => 4 } },
    admission: { holds: () => 7 },
    metrics: instruments(),
  };
  const store = {
    async report(report: ProcessReport) {
      if (now.isAway) throw new Error("away");
      reports.push(report);
    },
    leave: async ({ id }: { id: string }, worker: number) => void left.push([id, worker]),
    forget: async () => {},
  };
  const reporting = startReporting({ ...parts, store, clock, failed: (cause) => failures.push(cause) });
  return { clock, reports, left, failures, drained, now, identity, reporting };
}

const failing = (name: string, problem: string | null): CheckResult => ({ name, severity: "required", problem });

test("the report says who it is, how it does, and what it sees, within bounds", async () => {
  const { clock, reports, now, identity, reporting } = started();
  const many = Array.from({ length: 20 }, (_, at) => failing(`check-${at}`, "x".repeat(1_000)));
  now.results = [failing("catalog", null), { name: "redis", severity: "warning", problem: "away" }, ...many];
  await clock.advance(0);
  expect(reports).toHaveLength(1);
  expect(reports[0]).toMatchObject({
    ...{ node: identity, worker: 2, workersWanted: 3, version: "1.2.3", configuration: "a", isDraining: false },
    figures: { running: 7, waiting: 4, inputTokensPerSecond: 0 },
    enginesLeftOut: 44,
    certificateExpiresAt: "2026-12-31T00:00:00.000Z",
  });
  expect(reports[0]!.name).toEndWith(":443");
  expect(reports[0]!.engines).toHaveLength(256);
  expect(reports[0]!.problems).toHaveLength(8);
  expect(reports[0]!.problems[0]).toStartWith("check-0: xxx");
  expect(JSON.stringify(reports[0]!.problems).length).toBeLessThan(2_000);
  await reporting[Symbol.asyncDispose]();
});

test("it comes every two seconds, and within a quarter of one after something has changed", async () => {
  const { clock, reports, drained, now, reporting } = started();
  await clock.advance(0);
  await clock.advance(1_900);
  expect(reports).toHaveLength(1);
  await clock.advance(100);
  expect(reports).toHaveLength(2);
  const changes: (() => void)[] = [
    () => drained.set([{ upstream: "gpu-1", replica: null, drainedAt: new Date(0), until: null }]),
    () => void Object.assign(now, { hash: "b" }),
    () => void Object.assign(now, { results: [failing("database", "away")] }),
    () => void Object.assign(now, { results: [failing("draining", "the service is draining")], draining: true }),
  ];
  for (const [at, change] of changes.entries()) {
    change();
    await clock.advance(250);
    expect(reports).toHaveLength(3 + at);
  }
  expect(reports.at(-1)).toMatchObject({ configuration: "b", isDraining: true, problems: [] });
  await reporting[Symbol.asyncDispose]();
});

test("an outage of the store is logged once, and reports go on after it", async () => {
  const { clock, reports, failures, now, reporting } = started();
  now.isAway = true;
  await clock.advance(10_000);
  expect(failures).toHaveLength(1);
  now.isAway = false;
  await clock.advance(2_000);
  expect(reports).toHaveLength(1);
  now.isAway = true;
  await clock.advance(2_000);
  expect(failures).toHaveLength(2);
  await reporting[Symbol.asyncDispose]();
});

test("a process that stops takes its report out of the list, and sends no other", async () => {
  const { clock, reports, left, identity, reporting } = started();
  await clock.advance(0);
  await reporting[Symbol.asyncDispose]();
  expect(left).toEqual([[identity.id, 2]]);
  await clock.advance(60_000);
  expect([reports.length, clock.timers]).toEqual([1, 0]);
});
