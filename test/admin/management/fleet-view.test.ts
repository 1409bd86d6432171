/**
 * Tests how the reports of processes are combined into nodes: their states, sums, waiting times, and differing
 * configurations.
 */
import { describe, expect, test } from "bun:test";
import { exampleFleet } from "../../../src/admin/management/fleet-shape.ts";
import { fleetOf, nodesOf, quantile_ms, warningsOf } from "../../../src/admin/management/fleet-view.ts";
import { fleetSaid } from "../../../src/admin/management/fleet-words.ts";
import { storedReport } from "./fleet-reports.ts";

const states = (reports: Parameters<typeof nodesOf>[0]) => nodesOf(reports).map(({ state }) => state);

type Engine = ReturnType<typeof storedReport>["engines"][number];
/** The state of an engine in the report of a process. */
const engine = (seen: Partial<Engine>): Engine => ({
  ...{ upstream: "gpu-1", replica: null, states: { closed: 1 }, requests: 3, tokens: 9, waiting: 0 },
  ...seen,
});

describe("the state of a node", () => {
  test("is ready, not ready for the reasons that its processes give, draining, or silent", () => {
    const reports = [
      storedReport({}),
      storedReport({ problems: ["database: does not answer"] }),
      storedReport({ problems: ["database: does not answer"], isDraining: true }),
      storedReport({ isDraining: true, age_ms: 10_000 }),
    ];
    expect(states(reports)).toEqual(["ready", "not_ready", "draining", "silent"]);
    expect(nodesOf(reports)[1]!.problems).toEqual(["database: does not answer"]);
  });

  test("is that of the workers that live, and it has their sums", () => {
    const one = storedReport({ worker: 1, workersWanted: 3, figures: { running: 2, inputTokensPerSecond: 10.26 } });
    const others = [
      storedReport({ worker: 2, workersWanted: 3, figures: { running: 3, inputTokensPerSecond: 1.5 } }),
      storedReport({ worker: 3, workersWanted: 3, figures: { running: 9 }, problems: ["gone"], age_ms: 60_000 }),
    ];
    const [node, ...more] = nodesOf([one, ...others.map((other) => ({ ...other, node: one.node }))]);
    expect(more).toEqual([]);
    expect(node).toMatchObject({
      state: "ready",
      workers: 2,
      workersWanted: 3,
      running: 5,
      inputTokensPerSecond: 11.8,
    });
  });
});

describe("configurations", () => {
  const nodes = (...hashes: string[]) =>
    nodesOf(hashes.map((configuration, at) => storedReport({ configuration, name: `node-${at}:8080` })));

  test("that differ are a warning with the names of the few", () => {
    expect(warningsOf(nodes("a", "a", "a"), 0)).toEqual([]);
    expect(warningsOf(nodes("a", "b", "a"), 0)[0]).toStartWith("Configurations differ: node-1:8080 serves another");
    expect(warningsOf(nodes("a", "b", "b"), 0)[0]).toContain("node-0:8080 serves");
    expect(warningsOf(nodes("a", "b"), 0)[0]).toContain("node-1:8080 serves");
  });

  test("of nodes that are gone decide nothing", () => {
    const gone = ["b", "b"].map((configuration) => storedReport({ configuration, age_ms: 60_000 }));
    const live = storedReport({ configuration: "a", name: "live:8080" });
    const differing = nodesOf([...gone, live]).filter(({ configurationDiffers }) => configurationDiffers);
    expect(differing.map(({ state }) => state)).toEqual(["silent", "silent"]);
  });
});

test("an engine is the sum of what all processes see of it", () => {
  const seen = (states: Record<string, number>, requests: number) =>
    engine({ states, requests, tokens: 10 * requests, waiting: 1 });
  const other = { ...seen({ open: 1 }, 0), upstream: "gpu-0" };
  const one = storedReport({ engines: [seen({ closed: 2 }, 3)] });
  const [node] = nodesOf([
    one,
    { ...storedReport({ worker: 2, engines: [seen({ closed: 1, drained: 1 }, 4), other] }), node: one.node },
  ]);
  const { replica, requests_max } = { replica: null, requests_max: null };
  const open = [{ state: "open", routes: 1 }];
  const both = [
    { state: "closed", routes: 3 },
    { state: "drained", routes: 1 },
  ];
  expect(node!.engines).toEqual([
    { upstream: "gpu-0", replica, states: open, requests: 0, tokens: 0, waiting: 1, requests_max },
    { upstream: "gpu-1", replica, states: both, requests: 7, tokens: 70, waiting: 2, requests_max },
  ]);
});

test("the waits of several processes are one distribution", () => {
  expect(quantile_ms([], 0.5)).toBeNull();
  const waits = [
    { within_s: 1, requests: 60 },
    { within_s: 0.5, requests: 20 },
    { within_s: 0.5, requests: 20 },
  ];
  expect(quantile_ms(waits, 0.2)).toBe(250);
  expect(quantile_ms(waits, 0.4)).toBe(500);
  expect(quantile_ms(waits, 0.7)).toBe(750);
  expect(
    quantile_ms(
      [
        { within_s: 600, requests: 1 },
        { within_s: null, requests: 9 },
      ],
      0.95,
    ),
  ).toBe(600_000);
});

test("an engine may have as many requests as all processes together; one without a limit, or that is old, has none", () => {
  const limitOf = (...limits: (number | null | undefined)[]) =>
    fleetOf(
      limits.map((requests_max, at) =>
        storedReport({
          name: `${at}:80`,
          engines: [engine(requests_max === undefined ? {} : { requests_max })],
        }),
      ),
      [],
      0,
    ).engines[0]?.requests_max;
  expect(limitOf(32)).toBe(32);
  expect(limitOf(11, 11, 10)).toBe(32);
  expect(limitOf(32, null)).toBeNull();
  expect(limitOf(32, undefined)).toBeNull();
});

test("the fleet is the sum of the nodes that live, and says what somebody should look at", () => {
  const seen = { engines: [engine({})], figures: { running: 3, requestsPerSecond: 1.5 } };
  const reports = [
    storedReport({ ...seen, name: "a:80", configuration: "one" }),
    storedReport({ ...seen, name: "b:80", configuration: "one", problems: ["database: away"] }),
    storedReport({ ...seen, name: "c:80", configuration: "two", isDraining: true }),
    storedReport({ ...seen, name: "d:80", configuration: "three", age_ms: 20_000 }),
  ];
  expect(fleetOf(reports, [], 0)).toMatchObject({
    nodes: { ready: 1, notReady: 1, draining: 1, silent: 1 },
    configurations: [
      { configuration: "one", nodes: 2 },
      { configuration: "two", nodes: 1 },
    ],
    running: 9,
    requestsPerSecond: 4.5,
    engines: [{ upstream: "gpu-1", requests: 9, states: [{ state: "closed", routes: 3 }] }],
  });
  const { warnings } = fleetOf(reports, [], 0);
  expect(warnings.map((warning) => warning.split(/(?<=[:.]) /)[0])).toEqual([
    "Configurations differ:",
    "d:80 does not report any more.",
    "b:80 is not ready:",
  ]);
  expect(warnings[0]).toContain("c:80 serves another one");
});

test("certificates that end within 14 days are a warning, by their day", () => {
  const nodes = nodesOf(
    ["2026-12-15", "2026-12-14T23:59:59Z", "2026-12-14", "2026-12-01", null, undefined].map((at, number) =>
      storedReport({
        name: `node-${number}:443`,
        ...(at === undefined ? {} : { certificateExpiresAt: at && new Date(at).toISOString() }),
      }),
    ),
  );
  expect(nodes.map(({ certificateExpiresAt: at }) => at?.getUTCDate())).toEqual([15, 14, 14, 1, undefined, undefined]);
  expect(warningsOf(nodes, Date.parse("2026-12-01"))).toEqual([
    "The certificate of node-3:443 expired on 2026-12-01. Put a new one in the place of its files.",
    "The certificate of node-1:443, node-2:443 expires on 2026-12-14. Put a new one in the place of its files.",
  ]);
  expect(warningsOf(nodes, Date.parse("2026-11-01"))).toEqual([]);
});

test("a summary is bounded, whatever is reported", () => {
  const engines = (worker: number) =>
    Array.from({ length: 256 }, (_, at) => engine({ upstream: `gpu-${worker}-${at}` }));
  const reports = Array.from({ length: 20 }, (_, worker) =>
    storedReport({ engines: engines(worker), problems: ["database: away"], configuration: `${worker}` }),
  );
  const summary = fleetOf(reports, [], 0);
  expect(summary.engines).toHaveLength(512);
  expect(summary.enginesLeftOut).toBe(20 * 256 - 512);
  expect(summary.warnings).toHaveLength(6);
  expect(JSON.stringify(summary).length).toBeLessThan(100_000);
});

test("the states of routes are said in words that people know", () => {
  const states = ["closed", "half-open", "open", "down"].map((state, at) => ({ state, routes: at + 1 }));
  const fleet = { ...exampleFleet, engines: [{ ...exampleFleet.engines[0]!, states }] };
  const { pieces } = fleetSaid(fleet) as { pieces: object[] };
  const { columns, rows } = pieces[1] as { columns: { head: string; cell(row: unknown): string }[]; rows: unknown[] };
  expect(columns.find(({ head }) => head === "ROUTES")!.cell(rows[0])).toBe("1 ready, 2 on trial, 3 failing, 4 down");
});
