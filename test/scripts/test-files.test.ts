import { expect, test } from "bun:test";
import { filesOf, longPatterns } from "../../scripts/test-files.ts";

const seeds = Array.from({ length: 60 }, (_, seed) => seed);
const all = [...new Bun.Glob("test/**/*.test.ts").scanSync()];

test("a whole run has every file that is quick, and each of the others in some runs", () => {
  const runs = seeds.map((seed) => new Set(filesOf(seed)));
  const always = all.filter((file) => runs.every((run) => run.has(file)));
  const never = all.filter((file) => !runs.some((run) => run.has(file)));
  expect(never).toEqual([]);
  expect(always).toContain("test/core/store/ledger.test.ts");
  const long = all.length - always.length;
  expect(long).toBeGreaterThan(40);
  for (const run of runs) expect(run.size - always.length).toBe(Math.ceil(long / 4));
});

test("the same seed runs the same files, and another one others", () => {
  expect(filesOf(7)).toEqual(filesOf(7));
  expect(filesOf(7)).not.toEqual(filesOf(8));
});

test("each pattern of files that take long, with each of its alternatives, is of files that are there", () => {
  const patterns = longPatterns.flatMap((pattern) => {
    const [, before, alternatives = "", after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [null, pattern, "", ""];
    return alternatives.split(",").map((one) => `${before}${one}${after}`);
  });
  expect(patterns.filter((pattern) => ![...new Bun.Glob(pattern).scanSync()].length)).toEqual([]);
});
