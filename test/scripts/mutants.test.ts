import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mutants as ofProof } from "../../proof/mutants.ts";
import { mutants } from "../mutants/all.ts";
import {
  chosen,
  declared,
  type Mutant,
  mutated,
  named,
  notices,
  ofFiles,
  sampled,
  testWords,
} from "../mutants/mutant.ts";

const root = join(import.meta.dir, "../..");
const mutant: Mutant = {
  name: "one is two",
  file: "src/a.ts",
  find: "const a = 1;",
  replace: "const a = 2;",
  caughtBy: ["test/a.test.ts"],
  rule: "docs/design/usage.md, Holds",
};

describe("every mutant", () => {
  const all = named(mutants).map((one) => one.mutant);

  test("has a name of its own, and tests", () => {
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    for (const { name, caughtBy, skip } of all) {
      expect([name, caughtBy.length > 0 || skip !== undefined]).toEqual([name, true]);
    }
  });

  test("of SQL stands in the newest definition of its function: an older one is never run", () => {
    const migrations = [...new Bun.Glob("db/migrations/**/*.sql").scanSync({ cwd: root })].sort();
    const texts = new Map(migrations.map((path) => [path, readFileSync(join(root, path), "utf8")]));
    const later = (file: string, find: string) => {
      const before = texts.get(file)!.split(find)[0]!;
      const replaced = [...before.matchAll(/create (?:or replace )?(?:function|procedure) (\w+)/g)].at(-1)?.[1];
      const hasEnded = before.slice(before.lastIndexOf("create ")).split("$$").length > 2;
      if (replaced === undefined || hasEnded) return [];
      const again = new RegExp(`(?:create|create or replace|drop) (?:function|procedure) ${replaced}\\b`);
      return [...texts].filter(([path, text]) => path > file && again.test(text)).map(([path]) => path);
    };
    const ofSql = [...all, ...ofProof].filter(({ file }) => texts.has(file));
    expect(ofSql.length).toBeGreaterThan(20);
    expect(ofSql.map(({ name, file, find }) => [name, later(file, find)])).toEqual(ofSql.map(({ name }) => [name, []]));
  });
});

describe("a file of mutants", () => {
  const text = `@ src/a.ts
= docs/a.md
> test/a.test.ts
> test/b.test.ts > words
# one
-   if (a) {
- \t"\\n\${a}" - b
+ else
+
# two
- - b

= docs/a.md, B
> test/c.test.ts
# three
- c
+ d
! waits for c
@ src/b.sql
= docs/b.md
> test/d.test.ts
# four
- e
`;

  test("is read by the marks of its lines, without escapes", () => {
    const shared = { file: "src/a.ts", rule: "docs/a.md", caughtBy: ["test/a.test.ts", "test/b.test.ts > words"] };
    expect(declared(text)).toEqual([
      { ...shared, name: "one", find: `  if (a) {\n\t"\\n\${a}" - b`, replace: "else\n" },
      { ...shared, name: "two", find: "- b", replace: "" },
      {
        ...{ file: "src/a.ts", rule: "docs/a.md, B", caughtBy: ["test/c.test.ts"] },
        ...{ name: "three", find: "c", replace: "d", skip: "waits for c" },
      },
      { name: "four", file: "src/b.sql", rule: "docs/b.md", caughtBy: ["test/d.test.ts"], find: "e", replace: "" },
    ]);
  });

  test.each(["? a", "+ a", "# a\n+ b", "# a\n- b\n+ c\n- d", "! a", "a"])("that says %j is refused", (wrong) => {
    expect(() => declared(`@ a\n= b\n> c\n${wrong}`)).toThrow(/line \d does not fit/);
  });
});

describe("a mutant", () => {
  test("replaces its text, and takes the replacement as it stands", () => {
    expect(mutated("const a = 1;\n", mutant)).toBe("const a = 2;\n");
    expect(mutated("const a = 1;\n", { ...mutant, replace: "const a = '$&';" })).toBe("const a = '$&';\n");
  });

  test.each([
    ["its text is gone", "const b = 1;", "const a = 2;", "no longer contains"],
    ["its text stands twice", "const a = 1;\nconst a = 1;", "const a = 2;", "2 times"],
    ["it changes nothing", "const a = 1;", "const a = 1; // one", "means the same"],
    ["it is no TypeScript, for it would be caught by any test", "const a = 1;", "const a = ;", ""],
  ])("is stale if %s", (_, text, replace, says) => {
    expect(() => mutated(text, { ...mutant, replace })).toThrow(says);
  });

  test("is noticed by a test that fails, and not by one that cannot begin", () => {
    for (const said of [
      "(pass) a > b [1.00ms]\n(fail) a > c [1.00ms]\n",
      "(pass) a > b [1.00ms]\n(fail) a > (unnamed) [1.00ms]\n",
    ])
      expect([said, notices(said)]).toEqual([said, true]);
    for (const said of [
      "(fail) a > (unnamed) [1.00ms]\n",
      "(fail) (unnamed) [1.00ms]\n",
      "error: Cannot find module\n",
    ])
      expect([said, notices(said)]).toEqual([said, false]);
  });

  test("names a file of tests, or some tests in it", () => {
    expect(testWords("test/a.test.ts")).toEqual(["./test/a.test.ts"]);
    const [file, pattern = ""] = testWords("test/a.test.ts > is 1.5 (at least)");
    expect(file).toBe("./test/a.test.ts");
    const expression = new RegExp(pattern.replace("--test-name-pattern=", ""));
    expect([expression.test("it is 1.5 (at least), once"), expression.test("it is 125 (at least)")]).toEqual([
      true,
      false,
    ]);
  });
});

describe("a choice of mutants", () => {
  const all = ["a", "b", "c", "d", "e", "f", "g"];
  const take = (count: number, seed: number) => sampled(all, count, seed, (one) => one);

  test("by chance is the same for the same seed, and tries each one as seeds follow each other", () => {
    for (let first = 0; first < 20; first++) {
      expect(take(3, first)).toEqual(take(3, first));
      expect(take(3, first)).toHaveLength(3);
      expect(new Set([0, 1, 2].flatMap((later) => take(3, first + later))).size).toBe(all.length);
    }
    expect(take(100, 5)).toEqual(all);
    expect(sampled([], 3, 1, String)).toEqual([]);
  });

  test("by words takes rooms and parts of names, and names a word that means none", () => {
    const some = named({ usage: [mutant, { ...mutant, name: "two is three" }], auth: [{ ...mutant, name: "open" }] });
    const names = (...words: string[]) => chosen(some, words).map((one) => one.mutant.name);
    expect(names()).toEqual(["one is two", "two is three", "open"]);
    expect(names("usage")).toEqual(["one is two", "two is three"]);
    expect(names("three", "auth")).toEqual(["two is three", "open"]);
    expect(() => names("none")).toThrow("'none'");
  });

  test("by files takes those that break one, and those that a test in one must catch", () => {
    const one = { ...mutant, name: "a", file: "src/a.ts", caughtBy: ["test/b.test.ts > words"] };
    const some = named({ usage: [one, { ...one, name: "c", file: "src/c.ts", caughtBy: ["test/d.test.ts"] }] });
    const names = (...files: string[]) => ofFiles(some, new Set(files)).map(({ mutant: { name } }) => name);
    expect(names("src/a.ts", "src/none.ts")).toEqual(["a"]);
    expect(names("test/b.test.ts", "test/d.test.ts")).toEqual(["a", "c"]);
    expect(names()).toEqual([]);
  });
});
