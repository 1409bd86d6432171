/** Mutants fit the source: a line that was changed meanwhile would leave its rule without a test, until it is drawn. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "../mutants/all.ts";
import { hasTest } from "./titles.ts";

const root = join(import.meta.dir, "../..");

test("the line that each mutant breaks stands exactly once in its file", () => {
  const stale = Object.entries(mutants).flatMap(([room, list]) =>
    list
      .filter(({ file, find }) => readFileSync(join(root, file), "utf8").split(find).length !== 2)
      .map(({ name }) => `${room}: ${name}`),
  );
  expect(stale).toEqual([]);
});

test("the tests that a mutant names are there", () => {
  const named = Object.values(mutants).flatMap((list) =>
    list.flatMap(({ name, caughtBy }) => caughtBy.map((test) => ({ name, test }))),
  );
  const missing = named.filter(({ test }) => {
    const [file, words] = test.split(" > ", 2);
    return words !== undefined && !hasTest(readFileSync(join(root, file!), "utf8"), words);
  });
  expect(missing).toEqual([]);
});

test("a test is found by words of its name, of a group's and of values in them, and not by others", () => {
  const text =
    'describe.each(stores)("a book on %s", () => { test.each(kinds)("keeps the %s of it", keeps); test("is closed", closes); });';
  for (const words of [
    "is closed",
    "book on postgres",
    "on postgres is closed",
    "keeps the week",
    "on pglite keeps the week",
  ])
    expect([words, hasTest(text, words)]).toEqual([words, true]);
  for (const words of ["is opened", "a page on postgres", "on postgres is opened", "keeps a week"])
    expect([words, hasTest(text, words)]).toEqual([words, false]);
});
