/**
 * The choice of tests that are run against a drawn mutant: those that are known to run the part of the code (a
 * function, or a statement outside of functions) with the mutant.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Findings } from "../../scripts/drawn/findings.ts";
import { countedText, partOf, partsOf } from "../../scripts/drawn/parts.ts";
import { ran } from "../../scripts/drawn/ran.ts";
import { SqlFunctions } from "../../scripts/drawn/sql-functions.ts";
import { TestRuns } from "../../scripts/drawn/test-runs.ts";
import { folderWith, project } from "./project.ts";

describe("the parts of a file that run", () => {
  const text = `
export const first = (a: number) => a > 1 ? "many" : "one";
export function second(a: number | null): unknown {
  if (a === 1) return "braceless";
  else if (a === 2) { return "braced"; }
  for (const one of [a]) one === 3 && tell("joined");
  const list = a ?? "fallback";
  switch (list) {
    case 4: return (() => "arrow")();
    default: tell("other");
  }
  try { fails(a); } catch { return "caught"; }
  return function inner() { tell("never"); };
}
function tell(word: string) { word; }
function fails(a: unknown) { if (a === 5) throw new Error("five"); }
`;
  const words = [...text.matchAll(/"(\w+)"/g)];
  /** The two files that code from `countedText` imports to record which parts are run. */
  const counting = Object.fromEntries(
    ["scripts/drawn/counter.ts", "scripts/drawn/ran.ts"].map((path) => [path, readFileSync(path, "utf8")]),
  );

  /** Returns the words in those parts of the text that are run during `calls`. */
  async function wordsThatRan(calls: (file: { first(a: number): void; second(a: number | null): void }) => void) {
    await using types = await project({ "src/a.ts": text });
    const parts = partsOf(await types.tree("src/a.ts"), text);
    const folder = folderWith({
      "src/a.ts": countedText("src/a.ts", text, parts),
      ...counting,
    });
    calls(await import(join(folder, "src/a.ts")));
    const noted = readFileSync(join(folder, ran), "utf8").trim().split("\n");
    expect(new Set(noted).size).toBe(noted.length);
    return words
      .filter(({ index }) => noted.includes(`src/a.ts ${partOf(parts, { start: index, end: index + 1 })}`))
      .map(([, word]) => word);
  }

  test("are noted when they begin to run, and the others are not", async () => {
    expect(await wordsThatRan(() => {})).toEqual([]);
    expect(await wordsThatRan(({ first }) => first(2))).toEqual(["many"]);
    expect(await wordsThatRan(({ second }) => second(1))).toEqual(["braceless"]);
    expect(await wordsThatRan(({ second }) => second(2))).toEqual(["braced"]);
    expect(await wordsThatRan(({ second }) => second(3))).toEqual(["joined", "other"]);
    expect(await wordsThatRan(({ second }) => second(4))).toEqual(["arrow"]);
    expect(await wordsThatRan(({ second }) => second(5))).toEqual(["other", "caught", "five"]);
    expect(await wordsThatRan(({ second }) => second(null))).toEqual(["fallback", "other"]);
  });

  test("are the same program with and without the notes", async () => {
    const answers = ({ first, second }: { first(a: number): unknown; second(a: number | null): unknown }) => [
      [1, 2].map(first),
      [1, 2, 3, 4, 5].map((a) => second(a)?.toString()),
    ];
    await using types = await project({ "src/a.ts": text });
    const folder = folderWith({
      "src/a.ts": text,
      "src/b.ts": countedText("src/b.ts", text, partsOf(await types.tree("src/a.ts"), text)),
      ...counting,
    });
    const [plain, counted] = await Promise.all(["a", "b"].map((name) => import(join(folder, `src/${name}.ts`))));
    const [some, others] = [answers(plain), answers(counted)];
    expect(some[0]).toEqual(others[0]);
    // The third result is a function. Its text differs, because the instrumented version contains the recording.
    expect(some[1]?.toSpliced(2, 1)).toEqual(others[1]?.toSpliced(2, 1));
  });
});

describe("the tests that run a part", () => {
  const a = "test/core/usage/a.test.ts";
  const sources = { "src/core/usage/a.ts": "a", "src/core/usage/b.ts": "b" };
  const tests = { [a]: 'import "../../harness/help.ts";', "test/harness/help.ts": "help" };
  const place = (file: string, part: number) => [{ file, part }];

  function runsIn(folder: string, changed: Readonly<Record<string, string>> = {}) {
    const product = new Map(Object.entries(sources).map(([path, text]) => [path, changed[path] ?? text]));
    const ofTests = Object.entries(tests).map(([path, text]) => [path, changed[path] ?? text] as const);
    const tree = new Map([...product, ...ofTests]);
    const taken: string[] = [];
    const runs = new TestRuns(folder, product, tree, async (test) => {
      taken.push(test);
      return { took_ms: 20, parts: new Map([["src/core/usage/a.ts", [0, 2]]]) };
    });
    return { runs, taken };
  }

  test("are known once each test has run, and later runs of the command know them", async () => {
    const folder = folderWith({});
    const { runs, taken } = runsIn(folder);
    expect(runs.time_ms(a, place("src/core/usage/a.ts", 2))).toBe(null);
    expect(await Promise.all([runs.take(a, 0), runs.take(a, 1)])).toEqual([true, true]);
    expect(taken).toEqual([a]);
    for (const known of [runs, runsIn(folder).runs]) {
      expect(known.time_ms(a, place("src/core/usage/a.ts", 2))).toBe(20);
      expect(known.time_ms(a, place("src/core/usage/a.ts", 1))).toBe(false);
      expect(known.time_ms(a, place("src/core/usage/b.ts", 0))).toBe(false);
      expect(known.time_ms(a, [...place("src/core/usage/b.ts", 0), ...place("src/core/usage/a.ts", 0)])).toBe(20);
      expect(known.time_ms(a, null)).toBe(20);
      expect(known.passes(a)).toBe(true);
    }
  });

  test("are asked again when the file of the part has changed, or the test or a helper of it", async () => {
    const folder = folderWith({});
    await runsIn(folder).runs.take(a, 0);
    const elsewhere = runsIn(folder, { "src/core/usage/b.ts": "new" }).runs;
    expect(elsewhere.time_ms(a, place("src/core/usage/a.ts", 2))).toBe(20);
    expect(elsewhere.passes(a)).toBe(false);
    // Since its change, the test may run parts of that file.
    expect(elsewhere.time_ms(a, place("src/core/usage/b.ts", 0))).toBe(null);
    for (const path of ["src/core/usage/a.ts", a, "test/harness/help.ts"])
      expect(runsIn(folder, { [path]: "new" }).runs.time_ms(a, place("src/core/usage/a.ts", 2))).toBe(null);
  });
});

describe("of SQL", () => {
  const quoted = (body: string) => `language sql as $$ ${body} $$;`;
  const first = [
    `create function add() returns int ${quoted("select 1")}`,
    `create function sum_of() returns int ${quoted("select add()")}`,
    `create function gone() returns int ${quoted("select 1")}`,
    `create function noted() returns trigger ${quoted("select 1")}`,
    "create trigger noted after delete on person for each row execute function noted();",
    `create function shown() returns int ${quoted("select 1")}`,
    "create view people as select shown() from person;",
  ].join("\n");
  const second = `create or replace function add() returns int ${quoted("select 2")}\ndrop function gone();`;
  const files = {
    "db/migrations/0001_a.sql": first,
    "db/migrations/0002_b.sql": second,
    "src/stores/postgres/a.ts": "query(`select sum_of()`)",
    "src/stores/postgres/b.ts": "query(`delete from person`)",
  };
  const functions = new SqlFunctions(new Map(Object.entries(files)));
  const callersOf = (name: string) => functions.callersOf(name, (_file, at) => at)?.map(({ file }) => file);

  test("only the newest definition of a function runs", () => {
    const isNewest = (name: string, path: string) => functions.isNewest(name, `db/migrations/${path}`);
    expect([isNewest("add", "0001_a.sql"), isNewest("add", "0002_b.sql")]).toEqual([false, true]);
    expect([isNewest("sum_of", "0001_a.sql"), isNewest("gone", "0001_a.sql")]).toEqual([true, false]);
  });

  test("a function runs where a statement comes to it, by other functions or by a trigger", () => {
    expect(callersOf("sum_of")).toEqual(["src/stores/postgres/a.ts"]);
    expect(callersOf("add")).toEqual(["src/stores/postgres/a.ts"]);
    expect(callersOf("noted")).toEqual(["src/stores/postgres/b.ts"]);
  });

  test("which statements come to the function of a view is not known", () => {
    expect(functions.callersOf("shown", () => 0)).toBe(null);
  });
});

describe("a finding", () => {
  const id = "src/core/usage/a.ts, f: boundary shifted 1";
  const tests = ["test/core/usage/a.test.ts", "test/core/usage/b.test.ts"];
  const findings = (path: string, changed: readonly string[] = []) =>
    new Findings(path, (test) => (changed.includes(test) ? "new" : "old"));

  test("is kept until the mutant changes", () => {
    const path = join(folderWith({}), "findings.jsonl");
    findings(path).add(id, "a <= b", tests, { kind: "caught", why: tests[0]! });
    expect(findings(path).get(id, "a <= b", tests)).toEqual({ kind: "caught", why: tests[0]! });
    expect(findings(path).get(id, "a <= c", tests)).toBe(null);
    expect(findings(path).get(`${id}0`, "a <= b", tests)).toBe(null);
  });

  test("of one that was caught holds until the test that noticed changes", () => {
    const path = join(folderWith({}), "findings.jsonl");
    findings(path).add(id, "a <= b", tests, { kind: "caught", why: `${tests[0]} does not end` });
    expect(findings(path, [tests[1]!]).get(id, "a <= b", tests)?.kind).toBe("caught");
    expect(findings(path, [tests[0]!]).get(id, "a <= b", tests)).toBe(null);
  });

  test("of one that survived holds until any test that could notice changes, or another could", () => {
    const path = join(folderWith({ "findings.jsonl": '{"id":"half of a li' }), "findings.jsonl");
    findings(path).add(id, "a <= b", tests, { kind: "survived", why: "2 of 2" });
    expect(findings(path).get(id, "a <= b", tests)?.kind).toBe("survived");
    expect(findings(path, [tests[1]!]).get(id, "a <= b", tests)).toBe(null);
    expect(findings(path).get(id, "a <= b", [...tests, "test/core/usage/c.test.ts"])).toBe(null);
  });
});
