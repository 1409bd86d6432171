/** The states of the fleet about which operators get a notice. */
import { expect, test } from "bun:test";
import { conditionsOf, type ReportedNode, strayAnswer } from "../../../src/features/notices/conditions.ts";

const now = new Date("2026-11-30T12:00:00Z");
const inDays = (days: number) => new Date(now.getTime() + days * 86_400_000);
const node = (differs: Partial<ReportedNode> = {}): ReportedNode => ({
  ...{ id: "1", name: "node-1:80", state: "ready", problems: [], configurationDiffers: false },
  ...{ certificateExpiresAt: null, workers: 2, workersWanted: 2, engines: [] },
  ...differs,
});
const engine = (upstream: string, ...states: string[]) => ({
  upstream,
  states: states.map((state) => ({ state, routes: 1 })),
});
const about = (...nodes: ReportedNode[]) => conditionsOf(nodes, now).map((one) => one.about);

test("a well fleet has none", () => {
  const well = node({ engines: [engine("gpu-1", "closed")], certificateExpiresAt: inDays(15) });
  const leaving = node({ id: "2", state: "draining", configurationDiffers: true, workers: 1, workersWanted: 4 });
  expect(conditionsOf([well, leaving], now)).toEqual([]);
});

test("an engine is down where a node sees no route and no address of it that works", () => {
  for (const states of [["open"], ["half-open"], ["down", "unresolved"]])
    expect(about(node({ engines: [engine("gpu-1", ...states)] }))).toEqual(["engine:gpu-1"]);
  for (const states of [["open", "closed"], ["crowded"], ["resting"], ["drained"], []])
    expect(about(node({ engines: [engine("gpu-1", ...states)] }))).toEqual([]);
  expect(about(node({ engines: [engine("gpu-1", "open"), engine("gpu-1", "closed")] }))).toEqual([]);
  const [down] = conditionsOf(
    [
      node({ engines: [engine("gpu-1", "open")] }),
      node({ id: "2", name: "node-2:80", engines: [engine("gpu-1", "closed")] }),
      node({ id: "3", name: "node-3:80", engines: [engine("gpu-1", "down")] }),
    ],
    now,
  );
  expect(down!.details).toEqual({ upstream: "gpu-1", nodes: ["node-1:80", "node-3:80"] });
  expect(about(node({ state: "silent", engines: [engine("gpu-1", "open")] }))).toEqual(["node:1"]);
});

test("a certificate is told of 14 days before its end, and again 3 days before, for all nodes that have it", () => {
  const at = (days: number) => about(node({ certificateExpiresAt: inDays(days) }));
  expect([at(14.1), at(14), at(3.1)].map((found) => found.length)).toEqual([0, 1, 1]);
  expect(at(3)[0]).toEndWith(":3");
  expect(at(-1)[0]).toEndWith(":3");
  const shared = { certificateExpiresAt: inDays(5) };
  const [told, ...others] = conditionsOf([node(shared), node({ ...shared, id: "2", name: "node-2:80" })], now);
  expect([told!.details.nodes, told!.ends, others]).toEqual([["node-1:80", "node-2:80"], null, []]);
});

test("a node that fails is one condition, with all that is wrong", () => {
  const failing = node({ state: "not_ready", problems: ["database: away"], configurationDiffers: true, workers: 1 });
  expect(conditionsOf([failing], now).map(({ details }) => details)).toEqual([
    {
      node: "node-1:80",
      problems: ["database: away", "it has another configuration than most nodes", "1 of its 2 workers run"],
    },
  ]);
  const [silent] = conditionsOf([node({ state: "silent", workers: 0 })], now);
  expect(silent!.details.problems).toEqual(["it does not report any more"]);
});

test("a stray answer is told once a day for each engine", () => {
  const told = (upstream: string, at: string) => strayAnswer(upstream, new Date(at)).about;
  expect(told("gpu-1", "2026-11-30T00:00:00Z")).toBe(told("gpu-1", "2026-11-30T23:59:59Z"));
  expect(told("gpu-1", "2026-11-30T00:00:00Z")).not.toBe(told("gpu-1", "2026-12-01T00:00:00Z"));
  expect(told("gpu-1", "2026-11-30T00:00:00Z")).not.toBe(told("gpu-2", "2026-11-30T00:00:00Z"));
});
