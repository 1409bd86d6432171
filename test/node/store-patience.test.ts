/** How long requests wait for the database: longer only while the embedded database is still warming up. */
import { expect, test } from "bun:test";
import { storePatience } from "../../src/node/store-patience.ts";

function waits(kind: "pglite" | "postgres", usual_ms: number, ages_ms: number[]): number[] {
  let now_ms = 5_000;
  const patience = storePatience(kind, { now_ms: () => now_ms });
  return ages_ms.map((age_ms) => {
    now_ms = 5_000 + age_ms;
    return patience(usual_ms);
  });
}

test("in the first fifteen seconds of the embedded database a request waits up to fifteen, then as long as is usual", () => {
  expect(waits("pglite", 3_000, [0, 14_999, 15_000, 60_000])).toEqual([15_000, 15_000, 3_000, 3_000]);
});

test("a longer wait that is set stays as it is", () => {
  expect(waits("pglite", 60_000, [0, 20_000])).toEqual([60_000, 60_000]);
});

test("a database server is never waited for longer than is usual", () => {
  expect(waits("postgres", 3_000, [0, 1])).toEqual([3_000, 3_000]);
});
