import { expect, test } from "bun:test";
import { seldom } from "../../src/node/seldom.ts";

test("each thing once an interval, and things that are over make room for others", () => {
  let now_ms = 0;
  const isNew = seldom(1_000, { now_ms: () => now_ms });
  const heard = (prefix: string) =>
    Array.from({ length: 1_200 }, (_, at) => isNew(`${prefix}${at}`)).filter(Boolean).length;
  expect([isNew("a"), isNew("a"), isNew("b")]).toEqual([true, false, true]);
  // No more than 1000 things are remembered at once, so that names from outside cannot fill the memory.
  expect(heard("x")).toBe(998);
  now_ms = 999;
  expect([isNew("a"), isNew("c")]).toEqual([false, false]);
  now_ms = 1_000;
  expect([isNew("a"), isNew("c"), isNew("c")]).toEqual([true, true, false]);
  expect(heard("y")).toBe(998);
});
