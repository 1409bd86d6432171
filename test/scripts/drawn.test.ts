/**
 * Mutants that are made by mutation operators: the change of each operator, IDs that stay the same, a uniform draw, and
 * the tests that must notice the mutant.
 */
import { describe, expect, test } from "bun:test";
import { drawn, moduleOf, shuffled } from "../../scripts/drawn/draw.ts";
import { operators } from "../../scripts/drawn/operators.ts";
import { type Site, sitesOf } from "../../scripts/drawn/sites.ts";
import { applied } from "../../scripts/drawn/source.ts";
import { sqlSitesOf } from "../../scripts/drawn/sql.ts";
import { closureOf, testsOf as possibleOf } from "../../scripts/drawn/tests-of.ts";
import { project } from "./project.ts";

/** The key is a mutation operator; the value has lines of code, each with the lines that the operator makes of it. */
const lines: Record<string, [before: string, ...after: string[]][]> = {
  "condition negated": [
    ["if (a < b) f();", "if (!(a < b)) f();"],
    ["while (!found) f();", "while (found) f();"],
    ["a ? b : c;", "!(a) ? b : c;"],
  ],
  "boundary shifted": [
    ["a < b;", "a <= b;"],
    ["a >= b;", "a > b;"],
  ],
  "equality turned": [
    ["a === b;", "a !== b;"],
    ["a !== b;", "a === b;"],
  ],
  "and for or": [
    ["a && b;", "a || b;"],
    ["a || b;", "a && b;"],
  ],
  "operand dropped": [["a && b;", "a;", "b;"]],
  "every for some": [["all.every(f);", "all.some(f);"]],
  "fallback dropped": [["a ?? b;", "a;", "b;"]],
  "constant off by one": [["f(7, 0.5, 60_000, 96 * 1024);", "f(8, 0.5, 60_000, 96 * 1024);"]],
  "truth turned": [["f(true);", "f(false);"]],
  "sum turned": [
    ["a + b;", "a - b;"],
    ["a *= b / c;", "a *= b * c;"],
    ["n++;", "n--;"],
  ],
  "least for greatest": [["Math.min(a, b);", "Math.max(a, b);"]],
  "text emptied": [
    [
      'f("pro", "What is wrong.", g.x === "y");',
      'f("", "What is wrong.", g.x === "y");',
      'f("pro", "What is wrong.", g.x === "");',
    ],
  ],
  "list emptied": [["f([a, []]);", "f([]);"]],
  "arguments swapped": [["f(a, a, b);", "f(a, b, a);"], ["Math.max(eq(a, b), 1);"]],
  "await dropped": [["await f();", "f();"]],
  "statement dropped": [
    ["f();", ";"],
    ["throw new Error('Nothing is there.');", ";"],
  ],
  "statements swapped": [["{ a = 1; f(a); const b = 2; g(b); }", "{ f(a); a = 1; const b = 2; g(b); }"]],
  "returned early": [["function f(): void { g(); }", "function f(): void { return; g(); }"]],
  "nothing returned": [["const f = () => a;", "const f = () => null;", "const f = () => undefined;"]],
  "empty returned": [
    [
      "function f() { return a; }",
      "function f() { return []; }",
      'function f() { return ""; }',
      "function f() { return 0; }",
    ],
  ],
  "truth returned": [["function f() { return true; }", "function f() { return false; }"]],
  "loop left": [["for (;;) { continue; }", "for (;;) { break; }"]],
};

test("every operator is tried, and makes these changes and no others", async () => {
  expect(Object.keys(lines)).toEqual(Object.keys(operators));
  const rows = Object.entries(lines).flatMap(([operator, some]) => some.map((row) => ({ operator, row })));
  await using types = await project(Object.fromEntries(rows.map(({ row }, at) => [`a${at}.ts`, row[0]])));
  for (const [at, { operator, row }] of rows.entries()) {
    const [before, ...after] = row;
    const path = `a${at}.ts`;
    const sites = sitesOf(path, await types.tree(path), before).filter(({ id }) => id.includes(`: ${operator} `));
    expect([operator, ...sites.map(({ change }) => applied(before, change))]).toEqual([operator, ...after]);
  }
});

describe("a mutant", () => {
  const text =
    "class Hold {\n  // Grün.\n  f(a: number) {\n    if (a < 1) return 1;\n    return a <= 2 ? 3 : 4;\n  }\n}\nconst g = (a: number) => a < 5;\n";

  test("is known by its file, its function, its operator and its place among those", async () => {
    await using types = await project({ "a.ts": text });
    const boundaries = sitesOf("a.ts", await types.tree("a.ts"), text).filter(({ id }) => id.includes("boundary"));
    expect(boundaries.map(({ id }) => id)).toEqual([
      "a.ts, Hold.f: boundary shifted 1",
      "a.ts, Hold.f: boundary shifted 2",
      "a.ts, g: boundary shifted 1",
    ]);
    expect(applied(text, boundaries[1]!.change)).toContain("return a < 2 ?");
  });

  test("that the compiler refuses is told from one that it takes, in one look at many files", async () => {
    const files = { "a.ts": "export const a: string = 'x';", "b.ts": "export const b: string = 'y';" };
    await using types = await project(files);
    const look = (a: string, b: string) => types.takes(new Map(Object.entries({ "a.ts": a, "b.ts": b })));
    expect(await look("export const a: string = 1;", "export const b: string = '';")).toEqual(new Set(["b.ts"]));
    expect(await look("export const a: string = '';", "export const b: string = ;")).toEqual(new Set(["a.ts"]));
  });

  test("is none of what only people read: messages, the log, types, imports", async () => {
    const unread =
      'import { a } from "./b.ts";\ntype A = "x" | 1;\nlog.info("is full", 1 + 2);\nthrow new Fault("a_code", "is " + 3);\n';
    await using types = await project({ "a.ts": unread });
    const sites = sitesOf("a.ts", await types.tree("a.ts"), unread);
    expect(sites.map(({ id }) => id)).toEqual([
      "a.ts, the file: statement dropped 1",
      "a.ts, the file: statement dropped 2",
    ]);
  });
});

describe("of SQL", () => {
  const body = `create function f(a integer) returns bigint language plpgsql as $$
  declare n bigint := 0; -- a < b and c
  begin
    perform g(a);
    select coalesce(sum(t.nanos), h(1, 2)) into n from t
    where t.id = a and t.at between 3 and 4 and t.name <> ' and ' and exists (select 1 from u)
    order by t.at limit 2;
    n := least(n, 9) + 1;
    if n is null or n > 5 then return null; end if;
    return n;
  end $$;
create table t (id integer check (id > 0 and id < 9));`;
  const changed = (operator: string) =>
    sqlSitesOf("a.sql", body)
      .filter(({ id }) => id.startsWith(`a.sql, f: ${operator} `))
      .map(({ change }) => [body.slice(change.start, change.end), change.text]);

  test("functions are mutated between their quotes alone, and neither comments nor texts", () => {
    expect(changed("or for and")).toEqual([
      ["and", "or"],
      ["and", "or"],
      ["and", "or"],
      ["or", "and"],
    ]);
    expect(changed("boundary shifted")).toEqual([[">", ">="]]);
    expect(changed("constant off by one").map(([before]) => before)).toEqual("0 1 2 3 4 2 9 1 5".split(" "));
  });

  test("a predicate goes whole, and what belongs to a between stays", () => {
    expect(changed("predicate dropped").map(([before]) => before)).toEqual([
      "and t.at between 3 and 4",
      "and t.name <> ' and '",
      "and exists (select 1 from u)",
    ]);
  });

  test("orders turn, nulls have nothing in their place, sums turn, statements go", () => {
    expect(changed("order reversed")).toEqual([["", " desc"]]);
    expect(changed("fallback dropped")).toEqual([["coalesce(sum(t.nanos), h(1, 2))", "(sum(t.nanos))"]]);
    expect(changed("null turned")).toEqual([["", " not"]]);
    expect(changed("existence turned")).toEqual([["", "not "]]);
    expect(changed("least for greatest")).toEqual([["least", "greatest"]]);
    expect(changed("sum turned")).toEqual([["+", "-"]]);
    expect(changed("statement dropped").map(([before]) => before)).toEqual(["perform g(a);", "n := least(n, 9) + 1;"]);
  });
});

describe("a draw", () => {
  const site = (file: string, at: number): Site => {
    return { id: `${file}: ${at}`, file, change: { start: at, end: at, text: "" } };
  };
  const many = (file: string, count: number) => Array.from({ length: count }, (_, at) => site(file, at));
  const all = [
    ...many("src/core/usage/run.ts", 50),
    ...many("src/core/usage/tally.ts", 50),
    ...many("src/core/sse/decode.ts", 3),
    ...many("db/migrations/0001_a.sql", 50),
  ];
  const take = (count: number, seed: number, taken = (one: Site) => one.change.start >= 0) =>
    drawn(shuffled(all, seed), count, async (batch) => batch.filter(taken));
  const modules = (sites: readonly Site[]) => {
    const counts: Record<string, number> = {};
    for (const { file } of sites) counts[moduleOf(file)] = (counts[moduleOf(file)] ?? 0) + 1;
    return counts;
  };

  test("takes of each module as many, and the rest where there are more", async () => {
    expect(modules(await take(9, 3))).toEqual({ usage: 3, sse: 3, sql: 3 });
    expect(modules(await take(41, 3))).toEqual({ usage: 19, sse: 3, sql: 19 });
    expect(await take(1000, 3)).toHaveLength(all.length);
  });

  test("replaces what is refused, draws nothing twice, and is the same for the same seed", async () => {
    const some = await take(30, 5, ({ change }) => change.start % 2 === 0);
    expect(await take(30, 5, ({ change }) => change.start % 2 === 0)).toEqual(some);
    expect(modules(some)).toEqual({ usage: 14, sse: 2, sql: 14 });
    expect(new Set(some.map(({ id }) => id)).size).toBe(30);
  });
});

describe("the tests that must notice", () => {
  const testsOf = (...given: Parameters<typeof possibleOf>) => possibleOf(...given).map(({ test: file }) => file);

  const tree = new Map(
    Object.entries({
      "src/core/usage/run.ts": "",
      "src/core/usage/tally.ts": 'import "./run.ts";',
      "test/core/usage/run.test.ts": 'import "../../../src/core/usage/run.ts";',
      "test/core/usage/tally.test.ts": 'import "../../../src/core/usage/tally.ts";',
      "test/core/usage/node.test.ts": 'import "../../harness/sluice.ts";',
      "test/core/usage/price.test.ts": 'import "../../../src/core/usage/price.ts";',
      "test/core/http/run.test.ts": 'import "../../../src/core/usage/run.ts";',
      "test/core/http/far.test.ts": 'import "../../../src/core/usage/tally.ts";',
      "test/core/store/ledger.test.ts": "",
      "test/core/store/teams.test.ts": 'import postgres from "postgres";',
      "test/stores/postgres/plans.test.ts": "",
    }),
  );

  test("are those of its module that come to the file, and those elsewhere that import it; then others; nodes come last", () => {
    expect(testsOf("src/core/usage/run.ts", tree, [])).toEqual([
      "test/core/usage/run.test.ts",
      "test/core/http/run.test.ts",
      "test/core/usage/tally.test.ts",
      "test/core/usage/node.test.ts",
      "test/core/http/far.test.ts",
    ]);
  });

  test("begin with those that declared mutants of the file name", () => {
    const file = "src/core/usage/run.ts";
    const declared = {
      name: "",
      file,
      find: "",
      replace: "",
      rule: "",
      caughtBy: ["test/core/http/far.test.ts > some"],
    };
    expect(testsOf(file, tree, [declared])[0]).toBe("test/core/http/far.test.ts");
  });

  test("are those of other modules where the module has none", () => {
    const file = "src/core/time/soon.ts";
    const [using, test] = ["src/core/sse/a.ts", "test/core/sse/a.test.ts"];
    const other = { [file]: "", [using]: 'import "../time/soon.ts";', [test]: `import "../../../${using}";` };
    expect(testsOf(file, new Map(Object.entries(other)), [])).toEqual([test]);
  });

  test("are those that take long after the quick ones of the module, and far ones never", () => {
    const long = new Set(["test/core/usage/run.test.ts", "test/core/http/run.test.ts", "test/core/http/far.test.ts"]);
    expect(possibleOf("src/core/usage/run.ts", tree, [], long)).toMatchObject([
      { test: "test/core/usage/tally.test.ts", isLong: false },
      { test: "test/core/usage/node.test.ts", isLong: false },
      { test: "test/core/usage/run.test.ts", isLong: true },
      { test: "test/core/http/run.test.ts", isLong: true },
    ]);
  });

  test("of SQL are those of the stores first", () => {
    expect(testsOf("db/migrations/0004_verbs.sql", tree, []).slice(0, 3)).toEqual([
      "test/core/store/ledger.test.ts",
      "test/core/store/teams.test.ts",
      "test/stores/postgres/plans.test.ts",
    ]);
  });

  test("change with the helpers that they import", () => {
    const other = new Map([
      ["test/core/http/a.test.ts", 'import "../../harness/a.ts";\nimport "../../../src/a.ts";'],
      ["test/harness/a.ts", 'import "./b.ts";'],
      ["test/harness/b.ts", 'import "./a.ts";'],
      ["test/harness/c.ts", ""],
      ["src/a.ts", ""],
    ]);
    expect(closureOf("test/core/http/a.test.ts", other)).toEqual([
      "test/core/http/a.test.ts",
      "test/harness/a.ts",
      "test/harness/b.ts",
    ]);
  });
});
