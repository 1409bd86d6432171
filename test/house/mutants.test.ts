/**
 * The line that each mutant changes exists in the source. Otherwise a changed line would go unnoticed until the mutant
 * is drawn for a run, and until then nothing would show that a test checks its rule.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mutants as ofProof } from "../../proof/mutants.ts";
import { mutants } from "../mutants/all.ts";
import { mutated } from "../mutants/mutant.ts";
import { headingsOf } from "./citations.ts";
import { namesOf, standard } from "./names-of.ts";
import { hasTest } from "./titles.ts";

const root = join(import.meta.dir, "../..");

test("the line that each mutant breaks stands exactly once in its file", () => {
  const stale = Object.entries({ ...mutants, proof: ofProof }).flatMap(([room, list]) =>
    list
      .filter(({ file, find }) => readFileSync(join(root, file), "utf8").split(find).length !== 2)
      .map(({ name }) => `${room}: ${name}`),
  );
  expect(stale).toEqual([]);
});

describe("a mutant names only what is there, for any test would notice a name that nothing has", () => {
  const all = Object.values(mutants).flat();
  const textOf = (file: string) => readFileSync(join(root, file), "utf8");
  const wordsIn = (...globs: string[]) =>
    new Set(
      globs
        .flatMap((glob) => [...new Bun.Glob(glob).scanSync({ cwd: root })])
        .flatMap((file) => textOf(file).match(/[A-Za-z_$][\w$]*/g) ?? []),
    );

  test("in TypeScript", () => {
    const product = wordsIn("src/**/*.ts", "db/**/*.ts");
    const strange = all.flatMap((mutant) => {
      if (!mutant.file.endsWith(".ts")) return [];
      const there = wordsIn(mutant.file);
      const names = namesOf(mutated(textOf(mutant.file), mutant));
      return [
        ...names.free.filter((word) => !standard.free.has(word)),
        ...names.properties.filter((word) => !product.has(word) && !standard.properties.has(word)),
      ]
        .filter((word) => !there.has(word))
        .map((word) => ({ name: mutant.name, word }));
    });
    expect(strange).toEqual([]);
  });

  test("in SQL", () => {
    const there = wordsIn("db/migrations/**/*.sql");
    const isThere = (word: string) => there.has(word) || word.startsWith("pg_");
    const strange = all.flatMap(({ name, file, replace }) =>
      file.endsWith(".sql")
        ? (replace.match(/[A-Za-z_]\w*/g) ?? []).filter((word) => !isThere(word)).map((word) => ({ name, word }))
        : [],
    );
    expect(strange).toEqual([]);
  });
});

test("the tests that a mutant names are there", () => {
  const named = Object.values(mutants).flatMap((list) =>
    list.flatMap(({ name, caughtBy }) => caughtBy.map((test) => ({ name, test }))),
  );
  const missing = named.filter(({ test }) => {
    const [file, words] = test.split(" > ", 2);
    const path = join(root, file!);
    return !existsSync(path) || (words !== undefined && !hasTest(readFileSync(path, "utf8"), words));
  });
  expect(missing).toEqual([]);
});

test("the rule that a mutant breaks is a page of docs, or a heading of one", () => {
  const lost = Object.values(mutants).flatMap((list) =>
    list.flatMap(({ name, rule }) => {
      const [page = "", ...heading] = rule.split(", ");
      const isPage = /^docs\/(design\/)?[^/]+\.md$/.test(page) && existsSync(join(root, page));
      const headings = isPage ? headingsOf(readFileSync(join(root, page), "utf8")) : null;
      const isThere = heading.length === 0 ? headings !== null : headings?.includes(heading.join(", "));
      return isThere ? [] : [{ name, rule }];
    }),
  );
  expect(lost).toEqual([]);
});

test("a test is found by words of its name, of a group's and of values in them, and not by others", () => {
  const text =
    'describe.each(stores)("a book on %s", () => { test.each(kinds)("keeps the %s of it", keeps); test("is closed", closes); });';
  const found = [
    "is closed",
    "book on postgres",
    "on postgres is closed",
    "keeps the week",
    "on pglite keeps the week",
  ];
  const others = ["is opened", "a page on postgres", "on postgres is opened", "keeps a week"];
  expect([...found, ...others].filter((words) => hasTest(text, words))).toEqual(found);
});

test("the names of a piece of code are those that it uses and doesn't declare", () => {
  const names = (code: string) => Object.values(namesOf(code));
  expect(names("if (!isOpen) return limits.plan?.name;")).toEqual([
    ["isOpen", "limits"],
    ["plan", "name"],
  ]);
  expect(names("const copy = { ...all, key: value }; // of an error")).toEqual([["all", "value"], []]);
  expect(names(`rows.map(({ id, at }) => \`\${id} of \${owner}\`)`)).toEqual([["rows", "owner"], ["map"]]);
  expect(names('text.replace(/[a-z]+/g, "word") as string')).toEqual([["text"], ["replace"]]);
  expect(names("const all = globalThis as { kept?: Resolver }; all.kept ??= 1;")).toEqual([
    ["globalThis", "Resolver"],
    [],
  ]);
  expect(names("this.#held += 1;")).toEqual([[], ["held"]]);
});
