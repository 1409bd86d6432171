/** Mutants fit the source: a line that was changed meanwhile would leave its rule without a test, until it is drawn. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "../mutants/all.ts";

const root = join(import.meta.dir, "../..");

test("the line that each mutant breaks stands exactly once in its file", () => {
  const stale = Object.entries(mutants).flatMap(([room, list]) =>
    list
      .filter(({ file, find }) => readFileSync(join(root, file), "utf8").split(find).length !== 2)
      .map(({ name }) => `${room}: ${name}`),
  );
  expect(stale).toEqual([]);
});
