/**
 * The table of the bench: the best round counts, and ratios are of one run. The table says by how much budgets are met
 * or exceeded, and the guard by how much ratios have grown since a recorded run.
 */
import { expect, test } from "bun:test";
import { grown, type Line, linesOf, markdown, overBudget } from "../../bench/speed/report.ts";
import type { Slice } from "../../bench/speed/scenarios.ts";
import { names, type Row, type Scenario, scenarios } from "../../bench/speed/scenarios.ts";

const slice = (cpu_us: number, more: Partial<Slice> = {}): Slice => ({
  ...{ requests: 10, tokens: 160, cpu_us, postgres_us: 500, redis_us: 200, latencies_ms: [1], marks_ms: [] },
  ...{ gaps_ms: [], probes_ms: [], residentMost_bytes: 0, leftOut: 0, ...more },
});
const row: Row = {
  ...{ id: "small", name: "small", unit: "µs", of: ({ cpu_us, requests }) => cpu_us / requests, budget: 3 },
  compared: { with: names.passed, as: "ratio" },
};
const scenario: Scenario = { ...scenarios[0]!, rows: [row] };
const slices = (ours: Slice[]) =>
  new Map([
    [names.passed as string, [slice(400), slice(300)]],
    [names.postgres as string, ours],
  ]);

test("a row has the best of the rounds, compared with the best of what requests are passed on by", () => {
  const [line] = linesOf(scenario, slices([slice(1800), slice(1200), slice(1500)]));
  expect(line!.cells).toEqual({
    [names.passed]: { value: 30, compared: null, note: "" },
    [names.postgres]: { value: 120, compared: 4, note: "Postgres 50, Redis 20" },
  });
  expect(overBudget(line!, line!.cells[names.postgres]!)).toBeCloseTo(4 / 3);
  expect(markdown([line!], Object.values(names), [names.postgres])).toBe(
    [
      "|  | budget | passed on | Postgres + Redis |",
      "| --- | --- | --- | --- |",
      "| small | ≤ 3× | 30.0 µs | 120 µs, 4.00×, **1.33 times the budget**, Postgres 50, Redis 20 |",
    ].join("\n"),
  );
});

test("a row that is met says so by saying nothing, and one that is left out of says how much", () => {
  const [line] = linesOf(scenario, slices([slice(900, { leftOut: 30 })]));
  expect(overBudget(line!, line!.cells[names.postgres]!)).toBeNull();
  expect(line!.cells[names.postgres]!.note).toStartWith("does not keep up: 75 % left out");
});

test("of a target that answered nothing, its cell says so, and the others' have their row", () => {
  const none = slice(900, { requests: 0, tokens: 0, latencies_ms: [], leftOut: 128 });
  const [line] = linesOf(scenario, new Map([...slices([slice(900)]), [names.portkey, [none, none]]]));
  const [, , text] = markdown([line!], Object.values(names), []).split("\n");
  expect(text).toBe(
    "| small | ≤ 3× | 30.0 µs | 90.0 µs, 3.00×, Postgres 50, Redis 20 | answered none of 256 requests |",
  );
  expect(overBudget(line!, line!.cells[names.portkey]!)).toBeNull();
});

test("an event's cost says so where streams fell behind their engine", () => {
  const streams: Scenario = { ...scenario, load: { kind: "spread", count: 1, over_s: 1 } };
  const behaviour = { wait_ms: 20, tokens: 10, every_ms: 8, inputTokens: 1 };
  const noteAt = (took_ms: number) =>
    linesOf({ ...streams, behaviour }, slices([slice(900, { latencies_ms: [took_ms] })]))[0]!.cells[names.postgres]!
      .note;
  expect(noteAt(110)).toBe("");
  expect(noteAt(150)).toBe("streams took 1.5 times their pace");
});

test("what is added is compared by difference, and without a comparison the value itself counts", () => {
  const of = ({ latencies_ms }: Slice) => latencies_ms[0]!;
  const added: Row = { ...row, unit: "ms", of, compared: { with: names.passed, as: "added" }, budget: 0.6 };
  const alone: Row = { ...added, compared: null, budget: 1.5 };
  const ours = slice(1, { latencies_ms: [3] });
  const [first, second] = linesOf({ ...scenario, rows: [added, alone] }, slices([ours]));
  expect(first!.cells[names.postgres]!.compared).toBe(2);
  expect(overBudget(first!, first!.cells[names.postgres]!)).toBeCloseTo(2 / 0.6);
  expect(overBudget(second!, second!.cells[names.postgres]!)).toBe(2);
});

test("the guard names what has grown by more than half, and nothing else", () => {
  const line = (compared: number | null, as: Line["as"] = "ratio"): Line => ({
    ...{ id: "small", name: "small", unit: "µs", as, budget: 3 },
    cells: { [names.postgres]: { value: 1, compared, note: "" } },
  });
  expect(grown([line(6)], [line(4)])).toEqual([]);
  expect(grown([line(6.1)], [line(4)])).toEqual([
    "small, Postgres + Redis: 6.10 times, and 4.00 times when it was recorded",
  ]);
  expect(grown([line(9, "added")], [line(4, "added")])).toEqual([]);
  expect(grown([{ ...line(9), id: "new" }, line(null)], [line(4)])).toEqual([]);
});

test("every scenario's rows have names of their own, and compare with a target that it has", () => {
  const rows = scenarios.flatMap((one) => one.rows.map((row) => ({ row, targets: one.targets })));
  expect(new Set(rows.map(({ row }) => row.id)).size).toBe(rows.length);
  for (const { row, targets } of rows) if (row.compared) expect(targets).toContain(row.compared.with);
});

test("a target that is not asked for what a row tells has no cell there", () => {
  const probes: Row = { ...row, compared: null, of: ({ probes_ms }) => probes_ms[0] ?? Number.NaN };
  const ours = slices([slice(300, { probes_ms: [4] })]);
  const [line] = linesOf({ ...scenario, rows: [probes] }, ours);
  expect(Object.keys(line!.cells)).toEqual([names.postgres]);
});
