// Tests of the rules of the code's structure (its walls), and of nothing else. Sizes, names and prose are taste: the five
// largest files and functions are only printed, so that a reader knows where to look.

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { checksumOf, migrations } from "../db/migrate.ts";
import { faultCatalogue } from "../src/core/inference/fault.ts";
import { deadCitations, deadFileNames, deadLinks, headingsOf, unheldPages } from "./house/citations.ts";
import { codeOf, commentsOf, functionsOf, importsOf, type Tree } from "./house/source.ts";
import {
  borrowings,
  changedReleases,
  cycles,
  editedMigrations,
  impurities,
  releasedChecksums,
  releasedLine,
  strayTechnologies,
  unraisedFaults,
  untoldFaults,
  weightOfPages,
  wrongDirections,
} from "./house/walls.ts";
import {
  missingNouns,
  oddPersons,
  privateNames,
  riddles,
  spreadLiterals,
  strayUnits,
  vagueTypes,
} from "./house/words.ts";

const root = join(import.meta.dir, "..");

async function treeOf(pattern: string): Promise<Tree> {
  const paths = [...new Bun.Glob(pattern).scanSync({ cwd: root })].filter((path) => !path.endsWith(".d.ts")).sort();
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}

const documents = async () => new Map([...(await treeOf("*.md")), ...(await treeOf("docs/**/*.md"))]);
const house = await treeOf("{src,db}/**/*.ts");
const made = (files: Record<string, string>): Tree => new Map(Object.entries(files));

describe("the walls stand", () => {
  test("a file imports its own module, or modules before it", () => {
    expect(wrongDirections(house)).toEqual([]);
  });

  test("no file leads back to itself, types included", () => {
    expect(cycles(house)).toEqual([]);
  });

  test("the crash test of metering shares nothing with what it tests", async () => {
    expect(borrowings(await treeOf("{proof,test/harness}/**/*.ts"))).toEqual([]);
  });

  test("the pages of the console take types of the product, and no code", async () => {
    expect(weightOfPages(await treeOf("console/**/*.{ts,tsx}"))).toEqual([]);
    const tree = made({ "console/core/a.ts": 'import { verbs } from "../../src/management/verbs.ts";\nverbs;' });
    expect(weightOfPages(tree)[0]).toStartWith("console/core/a.ts imports ../../src/management/verbs.ts.");
  });

  test("each technology stays in its room", () => {
    expect(strayTechnologies(house)).toEqual([]);
  });

  test("what is pure touches no clock, no chance, no process and no network", () => {
    expect(impurities(house)).toEqual([]);
  });

  test("every fault has a test and a line in the documentation", async () => {
    const document = Bun.file(join(root, "docs/errors.md"));
    const tests = new Map([...(await treeOf("test/**/*.test.ts"))].filter(([path]) => path !== "test/house.test.ts"));
    expect(untoldFaults(Object.keys(faultCatalogue), tests, await document.text())).toEqual([]);
  });

  test("every fault is raised somewhere", () => {
    expect(unraisedFaults(Object.keys(faultCatalogue), house)).toEqual([]);
  });

  test("every citation in a comment leads to a heading in this repository", async () => {
    const cited = await treeOf("{src,db,test,scripts,bench,deploy,console}/**/*.{ts,tsx,sql}");
    expect(deadCitations(cited, await documents())).toEqual([]);
  });

  test("every file of the program that a comment names is there", async () => {
    const cited = await treeOf("{src,db,test,scripts,bench,console,proof,deploy}/**/*.{ts,tsx,sql}");
    expect(deadFileNames(cited, [...cited.keys()])).toEqual([]);
  });

  test("every page of the design says which test holds it", async () => {
    expect(unheldPages(await documents())).toEqual([]);
  });

  test("every link and path in a document leads to something that is there", async () => {
    expect(deadLinks(await documents(), (path) => existsSync(join(root, path)))).toEqual([]);
  });

  test("names use the words of the field, and units one case", async () => {
    const ours = new Map([...house, ...(await treeOf("{scripts,bench,console}/**/*.{ts,tsx}"))]);
    expect(privateNames(ours)).toEqual([]);
    const tests = [...(await treeOf("test/**/*.ts"))].filter(([path]) => !path.startsWith("test/house"));
    expect(strayUnits(new Map([...ours, ...tests]))).toEqual([]);
  });

  test("a comment begins with a sentence or the name of the thing", async () => {
    expect(riddles(await treeOf("{src,db,console,proof}/**/*.{ts,tsx}"))).toEqual([]);
  });

  test("a comment names what it is about, and an exported type whose it is", async () => {
    const rooms = await treeOf("src/**/*.ts");
    expect(missingNouns(rooms)).toEqual([]);
    expect(vagueTypes(rooms)).toEqual([]);
    const openings = [
      "Answers whether it ended",
      "Answers the sum",
      "This is a class: a.md",
      "One that is old is asked",
    ];
    for (const text of openings) expect(missingNouns(made({ "src/a.ts": `/** ${text}. */` }))).toHaveLength(1);
    const sentences = [
      "Answers a poll of the device",
      "Answers with events",
      "Answers that are kept",
      "A class, as a is",
    ];
    for (const text of sentences) expect(missingNouns(made({ "src/a.ts": `/** ${text}. */` }))).toEqual([]);
    expect(vagueTypes(made({ "src/a.ts": "export interface Parts {}\nexport type PartsOf = 1;" }))).toHaveLength(1);
    expect(vagueTypes(made({ "src/a.ts": "interface Parts {}" }))).toEqual([]);
  });

  test("a comment names whom it concerns, and a person is they", async () => {
    expect(oddPersons(await treeOf("{src,db,console,proof}/**/*.{ts,tsx}"))).toEqual([]);
    expect(oddPersons(made({ "src/a/b.ts": "/** Whoever asks for her key, there. */" }))).toHaveLength(2);
  });

  test("no object is made only to be spread", async () => {
    expect(spreadLiterals(await treeOf("{src,db,console,proof}/**/*.{ts,tsx}"))).toEqual([]);
    expect(spreadLiterals(made({ "src/a/b.ts": "const a = {\n  ...{ b, c },\n};" }))).toHaveLength(1);
  });

  test("migrations that were released stay as they were, and every file is part of one", async () => {
    const sums = migrations.map((one) => ({ name: one.name, sum: checksumOf(one) }));
    const checksums = await Bun.file(join(root, "db/migrations/checksums")).text();
    expect(editedMigrations(sums, checksums)).toEqual([]);
    expect(changedReleases(checksums, await Bun.file(join(root, "db/migrations/released")).text())).toEqual([]);
    for (const [path, text] of await treeOf("db/migrations/**/*.sql")) {
      const name = path.replace("db/migrations/", "").replace(/\.sql$|\/.*$/g, "");
      expect([path, migrations.find((one) => one.name === name)?.sql.split(text).length]).toEqual([path, 2]);
    }
  });
});

describe("the walls would be seen to fall", () => {
  test("no import is overlooked: what Bun's own scanner sees is seen here, and types too", () => {
    const transpiler = new Bun.Transpiler({ loader: "ts" });
    for (const [path, source] of house) {
      const seen = new Set(importsOf(source).map(({ target }) => target));
      const missed = transpiler.scanImports(source).filter(({ path: target }) => !seen.has(target));
      expect({ path, missed }).toEqual({ path, missed: [] });
    }
    const source =
      'import type {\n  A,\n} from "./a.ts";\nexport * from "./b.ts";\nlet c: import("./c.ts").C;\nimport "./d.ts";\n';
    expect(
      importsOf(source)
        .map(({ target, line }) => `${target}:${line}`)
        .sort(),
    ).toEqual(["./a.ts:1", "./b.ts:4", "./c.ts:5", "./d.ts:6"]);
  });

  test("the crash test that reaches the product through another file is named", () => {
    const tree = made({
      "proof/a.ts": 'import { b } from "../test/harness/b.ts";',
      "test/harness/b.ts": 'import { c } from "../../src/c.ts";',
    });
    expect(borrowings(tree)[0]).toStartWith("proof/a.ts reaches src/c.ts by test/harness/b.ts.");
    expect(borrowings(made({ "proof/a.ts": 'import { b } from "./b.ts";' }))).toEqual([]);
  });

  test("an import to the right is named with its line and what to do instead, a type's as well", () => {
    const tree = made({ "src/core/store/a.ts": '\nimport type { B } from "../http/b.ts";\n' });
    const [finding = ""] = wrongDirections(tree);
    expect(finding).toStartWith(
      "src/core/store/a.ts:2 imports src/core/http/b.ts. core/store sees core/schema, core/time, core/inference",
    );
    expect(finding).toEndWith(
      "Instead: let core/http call core/store, or take what is needed as an argument whose type core/store defines",
    );
    expect(
      wrongDirections(made({ "src/core/http/a.ts": 'import { b } from "../../stores/postgres/b.ts";' }))[0],
    ).toContain("src/core/store");
    expect(wrongDirections(made({ "src/utils/a.ts": 'import { b } from "../core/sse/b.ts";' }))[0]).toContain(
      "no module",
    );
    expect(wrongDirections(made({ "src/core/http/a.ts": 'import { b } from "../store/b.ts";' }))).toEqual([]);
    expect(wrongDirections(made({ "src/node/a.ts": 'import { b } from "../stores/postgres/b.ts";' }))).toEqual([]);
  });

  test("the core knows no feature, a feature no other, and a store the interfaces alone", () => {
    const seen = (path: string, target: string) =>
      wrongDirections(made({ [path]: `import type { A } from "${target}";` }));
    expect(seen("src/core/usage/a.ts", "../../features/telemetry/a.ts")).toHaveLength(1);
    expect(seen("src/features/workers/a.ts", "../responses/a.ts")).toHaveLength(1);
    expect(seen("src/features/workers/a.ts", "../../core/operations/a.ts")).toEqual([]);
    expect(seen("src/stores/redis/a.ts", "../../features/responses/a.ts")).toHaveLength(1);
    expect(seen("src/stores/redis/a.ts", "../../features/responses/store/a.ts")).toEqual([]);
    expect(seen("src/admin/management/a.ts", "../people/a.ts")).toHaveLength(1);
  });

  test("a circle of types is a circle", () => {
    const tree = made({
      "src/core/sse/a.ts": 'import type { B } from "./b.ts";',
      "src/core/sse/b.ts": 'import { c } from "./c.ts";',
      "src/core/sse/c.ts": 'export type { A } from "./a.ts";',
    });
    expect(cycles(tree)).toHaveLength(1);
    expect(cycles(tree)[0]).toStartWith(
      "src/core/sse/a.ts -> src/core/sse/b.ts -> src/core/sse/c.ts -> src/core/sse/a.ts",
    );
  });

  test("a technology outside its room is named with what to do instead", () => {
    const tree = made({
      "src/admin/cli/a.ts": 'import { drizzle } from "drizzle-orm/pglite";\nconst r = await import("ioredis");',
      "src/core/protocol/openai-chat/decode.ts": 'import Type from "typebox";',
      "src/core/protocol/openai-chat/contract.ts": 'import Type from "typebox";',
      "src/stores/postgres/a.ts": 'import postgres from "postgres";',
    });
    expect(strayTechnologies(tree).map((line) => line.split(" ")[0])).toEqual([
      "src/admin/cli/a.ts:1",
      "src/admin/cli/a.ts:2",
      "src/core/protocol/openai-chat/decode.ts:1",
    ]);
  });

  test("a clock in a pure file is seen; in a comment, a text or another's method it is none", () => {
    const tree = made({
      "src/core/sse/a.ts": "export const a = () => Date.now();",
      "src/core/sse/b.ts": '// Date.now\nexport const b = (c: { fetch(): void }) => [c.fetch(), "Math.random"];',
      "src/core/auth/c.ts": "/** Keys. Pure. */\nexport const c = () => crypto.randomUUID();",
      "src/core/auth/d.ts": "export const d = () => crypto.randomUUID();",
      "src/core/sse/e.ts": 'import { readFileSync } from "node:fs";\nexport const e = readFileSync;',
    });
    expect(impurities(tree).map((line) => line.split(" ")[0])).toEqual([
      "src/core/sse/a.ts",
      "src/core/auth/c.ts",
      "src/core/sse/e.ts:1",
    ]);
    expect(codeOf("const a: string = 'process';")).not.toContain("process");
  });

  test("a citation of what is not here, of no heading, or of nothing in particular is named with its line", () => {
    const pages = made({
      "docs/design/metering.md": "# Metering\n\n## Rule 1: A batch\n\n## Room\n\n## Room left\n",
      "docs/errors.md": "# Errors\n",
    });
    const problemsOf = (comment: string, path = "src/a.ts") => deadCitations(made({ [path]: comment }), pages);
    expect(problemsOf("\n/**\n * Holds (elsewhere.md,\n * Usage).\n */")[0]).toStartWith(
      "src/a.ts:2 cites elsewhere.md",
    );
    expect(problemsOf(["const a = 1;", "// design/metering.md, Room"].join(" "))).toHaveLength(1);
    expect(problemsOf("-- elsewhere.md, Room", "db/a.sql")).toHaveLength(1);
    expect(problemsOf("// docs/design/metering.md, Roomy")).toHaveLength(1);
    expect(problemsOf("// docs/design/metering.md, Room elsewhere.")).toHaveLength(1);
    expect(problemsOf("// docs/design/metering.md has it")).toHaveLength(1);
    expect(problemsOf("// docs/errors.md, Roomy")).toHaveLength(1);
    expect(problemsOf("// docs/errors.md has it, or docs/errors.md, Errors")).toEqual([]);
    expect(problemsOf("// only now (design: rule 1)")).toHaveLength(2);
    expect(problemsOf("// believed for a second (B40)")).toHaveLength(1);
    expect(problemsOf("// as engines send it, part f.")).toHaveLength(1);
    expect(problemsOf("// docs/design/metering.md, Room. Rule 2 too")).toHaveLength(1);
  });

  test("a citation that leads somewhere passes, over the end of a line as well", () => {
    const pages = made({ "docs/design/metering.md": "# Metering\n\n## Rule 1: A batch\n\n## Room left\n" });
    const cites =
      "/**\n * Only now (docs/design/metering.md, Room\n * left). See docs/design/metering.md, Rule 1: A batch.\n */";
    expect(deadCitations(made({ "src/a.ts": cites }), pages)).toEqual([]);
    expect(commentsOf("src/a.ts", 'const a = "/** b.md */";')).toEqual([]);
    expect(headingsOf("# A\n\n```sh\n# no heading\n```\n\n## `b` and c\n")).toEqual(["A", "b and c"]);
  });

  test("a file that a comment names and that is gone is named with its line, unless it is an example", () => {
    const tree = made({ "src/x/b.ts": "// As src/x/gone.ts, ./b.ts and x/b.ts do; see gone.ts.\n// Of src/a.ts.\n" });
    const gone = ["src/x/gone.ts", "gone.ts"].map(
      (name) => `src/x/b.ts:1 names ${name}, which is not in this repository`,
    );
    expect(deadFileNames(tree, ["src/x/b.ts"])).toEqual(gone);
  });

  test("a page that no test holds is named", () => {
    const pages = made({ "docs/design/a.md": "# A\n\nHeld by: hope.\n", "docs/b.md": "# B\n" });
    expect(unheldPages(pages)).toHaveLength(1);
    expect(unheldPages(made({ "docs/design/a.md": "# A\n\nHeld by: `test/a.test.ts`.\n" }))).toEqual([]);
  });

  test("a link to no file, or to no heading, and a path that is not there are named", () => {
    const pages = made({
      "docs/a.md":
        "# A\n\n[b](b.md#the-b-of-b) [c](./b.md#c) [d](d.md) [e](#a) [f](https://f) `src/g.ts` `src/h.ts` i.md, b.md\n",
      "docs/b.md": "# The `b` of b\n",
    });
    const found = deadLinks(pages, (path) => path === "docs/a.md" || path === "docs/b.md" || path === "src/g.ts");
    expect(found).toEqual([
      "docs/a.md links to ./b.md#c: docs/b.md has no such heading",
      "docs/a.md links to d.md, which is not there",
      "docs/a.md names src/h.ts, which is not there",
      "docs/a.md names i.md, which is not there",
    ]);
  });

  test("a fault that is only listed is named, however it is listed", () => {
    const tree = made({
      "src/core/inference/fault.ts":
        'const faults = { one: { status: 400 }, two: { status: 400 } };\nconst of = ["three"];',
      "src/core/http/a.ts": 'throw new Fault(\n  "one",\n  "Because.");\nreturn { code: "four", param };',
    });
    expect(unraisedFaults(["one", "two", "three", "four"], tree).map((line) => line.split(":")[0])).toEqual([
      "two",
      "three",
    ]);
  });

  test("a private word, or a unit in camel case, is named with what to use instead", () => {
    const tree = made({
      "src/a/keeper.ts": "export const a = 1;",
      "src/a/b.ts": "// A door.\nconst door = 'letters';\nfunction c(wish: object, shownTo: 1) {}\n",
      "src/a/d.ts": "const { leaseMs } = { tokensMax: Math.max };\nconst wait_ms = 1;",
    });
    expect(privateNames(tree).map((line) => line.split(". Instead: ")[0])).toEqual([
      "src/a/keeper.ts: a private word",
      "src/a/b.ts:2: 'door'",
      "src/a/b.ts:3: 'wish'",
    ]);
    expect(strayUnits(tree)).toEqual([
      "src/a/d.ts:1: 'leaseMs'. Instead: lease_ms",
      "src/a/d.ts:1: 'tokensMax'. Instead: tokens_max",
    ]);
  });

  test("a comment that begins as a riddle is named with its line", () => {
    const tree = made({ "src/a/b.ts": "const a = 1;\n/** Of a key. */\nconst b = 2;\n// The offer of a node.\n" });
    expect(riddles(tree)).toEqual(["src/a/b.ts:2: 'Of a key.'. Instead: a sentence, or the noun that names it"]);
  });

  test("a fault without a test or a line is named twice", () => {
    const tests = made({ "test/a.test.ts": 'expect(code).toBe("one")' });
    expect(untoldFaults(["one", "two"], tests, "| `one` |")).toHaveLength(2);
  });

  test("a released migration that was edited or removed is named with what to do instead, and a newer one is not", () => {
    const sum = (letter: string) => letter.repeat(64);
    const migrations = (...letters: string[]) =>
      letters.map((letter, at) => ({ name: ["0001_one", "0002_two", "0003_three"][at]!, sum: sum(letter) }));
    const checksums = releasedChecksums(migrations("a", "b"));
    expect(editedMigrations(migrations("a", "b"), checksums)).toEqual([]);
    expect(editedMigrations(migrations("a", "b", "c"), checksums)).toEqual([]);
    expect(editedMigrations(migrations("a", "c"), "")).toEqual([]);
    expect(editedMigrations(migrations("a", "c"), checksums)).toEqual([
      expect.stringContaining("append db/migrations/0003_"),
    ]);
    expect(editedMigrations(migrations("a"), checksums)).toEqual([
      expect.stringContaining("0002_two is not in its place"),
    ]);
  });

  test("a released migration that was changed with its checksum, moved or taken away is named, and a newer one is not", () => {
    const [one, two, three] = ["a", "b", "c"].map((letter, at) =>
      releasedChecksums([{ name: `000${at + 1}_x${letter}`, sum: letter.repeat(64) }]),
    );
    const released = `${releasedLine("0.2.0", one! + two!)}\n`;
    expect(released).toStartWith("0.2.0  0002_xb  ");
    expect(changedReleases(one! + two! + three!, released)).toEqual([]);
    expect(changedReleases("", "")).toEqual([]);
    const changed = [expect.stringContaining("up to 0002_xb were released as 0.2.0")];
    for (const checksums of [one!.replace("a", "d") + two!, two! + one! + three!, one! + three!, two!])
      expect(changedReleases(checksums, released)).toEqual(changed);
  });
});

describe("functions are measured", () => {
  const measured = (path: string, source: string) =>
    functionsOf(path, source).map(({ name, lines }) => `${name} ${lines}`);

  test("in TypeScript: functions, arrows and methods, whatever their signatures span", () => {
    const source = `
export async function short(a: number): Promise<void> {
  await a;
}
export function spread(
  a: number,
  b: () => void,
): number {
  return a;
}
function* destructured({
  a,
  b,
}: Parts): Iterable<number> {
  yield a;
}
export function typed<T>(
  a: T,
): Promise<{
  a: T;
}> {
  return a;
}
const arrow = async (
  a: number,
): Promise<number> => {
  return a;
};
const small = (a: number) => {
  return a;
};
class A {
  constructor(
    readonly a: number,
  ) {
    this.a = a;
  }

  async #hidden(
    a: number,
  ): Promise<void> {
    if (
      a
    ) {
      await a;
    }
  }

  get read() {
    return this.a;
  }

  async *events(): AsyncGenerator<number> {
    yield 1;
  }
}
export const made = {
  method(a: number) {
    return a;
  },
  property: async (a: number) => {
    await a;
  },
  taken({
    a,
  }: Parts) {
    return a;
  },
};
`;
    expect(measured("src/a.ts", source)).toEqual([
      "short 3",
      "spread 6",
      "destructured 6",
      "typed 7",
      "arrow 5",
      "small 3",
      "#hidden 9",
      "read 3",
      "events 3",
      "method 3",
      "property 3",
      "taken 5",
    ]);
  });

  test("but no call, no loop, and no function that ends on its line", () => {
    const source = `
test("a", () => {
  expect(
    1,
  ).toBe(1);
  call(
    a,
  ).then((b) => {
    b();
  });
  for (const a of [
    1,
  ]) {
    a();
  }
  setTimeout(() => {
    a();
  }, 1);
  register({
    a,
  });
});
const one = (a: number) => a;
const value = [
  1,
].map((a) => {
  return a;
});
`;
    expect(measured("src/a.ts", source)).toEqual([]);
  });

  test("in SQL: from their names to the ends of their bodies", () => {
    const source = `create table a (b text);

create function usage_add(
  a integer, b integer
) returns integer
  language plpgsql volatile
  as $$
  begin
    return a + b; -- $ 5
  end $$;

create or replace function one() returns integer language sql as $body$ select 1 $body$;
`;
    expect(measured("db/migrations/0001_a.sql", source)).toEqual(["usage_add 8", "one 1"]);
  });

  test("none in SQL is longer than 70 lines", async () => {
    const all = [...(await treeOf("db/**/*.sql"))].flatMap(([path, source]) => functionsOf(path, source));
    const [longest] = all.sort((one, other) => other.lines - one.lines);
    console.log(`the longest function in SQL: ${longest!.name} ${longest!.lines}`);
    expect(longest!.lines).toBeLessThanOrEqual(70);
  });

  test("none of the ledger's is overlooked", async () => {
    for (const [path, source] of await treeOf("db/**/*.sql"))
      expect(functionsOf(path, source)).toHaveLength(source.match(/^create .*\bfunction\b/gim)?.length ?? 0);
  });
});

test("the five largest files and functions, to look at", async () => {
  const all = new Map([...house, ...(await treeOf("{test,scripts,bench}/**/*.ts"))]);
  const files = [...all].map(([path, source]) => ({ path, name: "", lines: source.split("\n").length }));
  const functions = [...house, ...(await treeOf("db/**/*.sql"))].flatMap(([path, source]) => functionsOf(path, source));
  for (const [title, extents] of Object.entries({ files, functions })) {
    const largest = extents.sort((a, b) => b.lines - a.lines).slice(0, 5);
    console.log(
      `largest ${title}: ${largest.map(({ path, name, lines }) => `${path} ${name} ${lines}`.replace("  ", " ")).join(", ")}`,
    );
  }
});
