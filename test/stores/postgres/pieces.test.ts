// Splits long work into short statements, and into as few as the time limit of each allows, even if a statement has a
// high fixed cost.

import { afterAll, afterEach, expect, spyOn, test } from "bun:test";
import { DatabaseError } from "../../../src/stores/postgres/database-error.ts";
import { inPieces } from "../../../src/stores/postgres/pieces.ts";

const times = { quick_ms: 100, slow_ms: 500 };

let now_ms = 0;
const clock = spyOn(performance, "now").mockImplementation(() => now_ms);
afterEach(() => {
  now_ms = 0;
});
afterAll(() => clock.mockRestore());

/** The pieces into which a range is split if a statement for a piece takes `costOf` milliseconds. */
async function piecesOf(until: number, costOf: (size: number) => number): Promise<[number, number][]> {
  const pieces: [number, number][] = [];
  await inPieces({ since: 0, until }, times, async (from, to) => {
    const cost_ms = costOf(to - from);
    now_ms += cost_ms;
    if (cost_ms > 10_000) throw new DatabaseError("canceling statement due to statement timeout", "57014");
    pieces.push([from, to]);
  });
  expect(pieces.map(([from]) => from)).toEqual([0, ...pieces.slice(0, -1).map(([, to]) => to)]);
  expect(pieces.at(-1)![1]).toBe(until);
  return pieces;
}

test("a statement that costs the same at any size is sent for many transactions", async () => {
  expect((await piecesOf(10_000_000, () => 700)).length).toBeLessThan(200);
});

test("a statement whose cost grows with its size takes little longer than the smallest", async () => {
  const cost_ms = (size: number) => 200 + size * 0.1;
  const sizes = (await piecesOf(200_000, cost_ms)).map(([from, to]) => to - from);
  expect(Math.max(...sizes.map(cost_ms))).toBeLessThan(1_000);
  expect(sizes.length).toBeLessThan(200);
});

test("what the server ended is read again in smaller pieces, down to a single transaction", async () => {
  const sizes = (await piecesOf(1_000, (size) => (size > 4 ? 10_001 : 150 * size))).map(([from, to]) => to - from);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
  await expect(piecesOf(10, () => 10_001)).rejects.toThrow("statement timeout");
});
