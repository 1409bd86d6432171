/**
 * Faults of engines under load, with a limit on each engine: each request has one record, and the ledger's totals agree
 * with the records.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chanceOf } from "../faults/chance.ts";
import { seed, times } from "../harness/depth.ts";
import { nanosOf } from "../harness/money.ts";
import { endedReceipt } from "../harness/receipts.ts";
import { asks, protocols, type Seen } from "./callers.ts";
import { type Rig, startRig } from "./rig.ts";
import { canonical } from "./wall.ts";

const faults_min = times(100, 1_000);
const clients = 64;
const length_ms_max = times(120_000, 600_000);
/**
 * The faults of which an engine has one at a time: it refuses, breaks connections, stalls, sends malformed data, sends
 * an empty or late response, or works normally.
 */
const moods = [
  ...["ok", "ok", "ok", "s02", "s04", "s05", "s08", "s09", "s10", "s11", "s12", "s13"],
  ...["s06", "s07", "unknown", "html", "garbage", "empty"],
];

let rig: Rig;
beforeAll(async () => {
  const timeouts = "{ first_part_ms: 300, first_part_spare_ms: 60, idle_ms: 500 }";
  const routes = [0, 1, 2].map((wall) => ({ wall, model: `ok-mixed-${wall}` }));
  rig = await startRig([{ id: "acme/mixed", routes, timeouts }], {}, "", ", concurrent_max: 16");
}, 60_000);
afterAll(() => rig.stop());

test("whatever engines do, each request has one answer and one record, and nothing is charged for nothing", async () => {
  const chance = chanceOf(seed);
  let faults = 0;
  const moody = setInterval(() => {
    for (const [index, wall] of rig.walls.entries()) wall.set(`ok-mixed-${index}`, chance.pick(moods));
  }, 5);
  const told: Seen[] = [];
  const begun_ms = performance.now();
  const failures = async () => {
    const metrics = await (await rig.sluice.fetch("/metrics")).text();
    const counts = metrics.matchAll(/^upstream_attempts_total\{[^}]*outcome="(\w+)"\} (\d+)/gm);
    return [...counts].reduce((sum, [, outcome, count]) => sum + (outcome === "answered" ? 0 : Number(count)), 0);
  };
  const client = async (name: number) => {
    while (faults < faults_min && performance.now() - begun_ms < length_ms_max) {
      told.push(await asks(rig.sluice, protocols[name % protocols.length]!, "acme/mixed", chance.below(2) === 0));
      if (name === 0) faults = await failures();
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, name) => client(name)));
  clearInterval(moody);
  expect(faults).toBeGreaterThanOrEqual(faults_min);
  for (const one of told) {
    // Each response ends clearly: it is complete, or it has an error with a code.
    if (one.isComplete) expect(["", canonical]).toContain(one.text);
    else expect(one.code).toBeString();
  }
  const receipts = await Promise.all(
    told.map(({ requestId }) => endedReceipt(rig.sluice, requestId, { deadline_ms: 30_000 })),
  );
  for (const [index, { outcome, cost }] of receipts.entries()) {
    const { isComplete, text } = told[index]!;
    expect(outcome).toBe(isComplete ? "completed" : "failed");
    if (outcome === "failed" && text === "") expect(nanosOf(cost.charged)).toBe(0);
  }
  const metrics = await (await rig.sluice.fetch("/metrics")).text();
  const records = [...metrics.matchAll(/^inference_requests_total\{.*\} (\d+)/gm)];
  expect(records.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(told.length);
  expect((await rig.sluice.cli("usage", "check")).code).toBe(0);
}, 900_000);
