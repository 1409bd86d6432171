/**
 * Compares charges with the true costs, for engines of every dialect and engines that never report, and for each way in
 * which a response may end. Reported usage is charged exactly, all other usage within five percent, and undelivered
 * responses cost nothing. For the complete table, run `npm run truth`.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { nanosOf } from "../harness/money.ts";
import { type Cell, charges, type End, ends } from "./charges.ts";
import { sampledRows } from "./rows.ts";
import { error } from "./table.ts";

let cells: Cell[];
beforeAll(async () => {
  cells = await charges(sampledRows, ends);
}, 240_000);

const of = (...ends: End[]) => cells.filter(({ end }) => ends.includes(end));
const reporting = new Set(sampledRows.filter(({ report }) => report !== null).map(({ name }) => name));

describe("an answer that came to its end", () => {
  test("is charged by its report, to the unit, in every dialect", () => {
    const told = of("whole", "streamed", "whole, left").filter(({ row }) => reporting.has(row));
    expect(told).toHaveLength(3 * reporting.size);
    for (const cell of told)
      expect([cell.row, cell.end, cell.isReported, cell.charged]).toEqual([cell.row, cell.end, true, cell.truth]);
  });
});

test("what nobody reports is charged within five percent, however it ends", () => {
  const others = of("streamed", "whole", "left early", "whole, left", "broken", "recovered", "at a window");
  expect(others).toHaveLength(7 * sampledRows.length);
  for (const cell of others) {
    const said = `${cell.row}, ${cell.end}: ${cell.charged} of ${cell.truth}`;
    expect(Math.abs(error(cell)), said).toBeLessThan(0.05);
  }
});

test("an answer that ends where a window does has used it up to a delta, and no more", () => {
  for (const { row, receipt } of of("at a window")) {
    expect([row, receipt.stopped_by, nanosOf(receipt.cost.uncharged)]).toEqual([row, "usage_window", 0]);
  }
});

test("what was asked for whole and broke has delivered nothing, and costs nothing", () => {
  for (const { row, charged } of of("whole, broken")) expect([row, charged]).toEqual([row, 0]);
});
