// The walls of the house, and nothing else. Sizes, names and prose are taste: the five largest files and functions are
// printed, and whoever reads that knows where to look.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { faultCatalogue } from "../src/inference/fault.ts";
import { codeOf, functionsOf, importsOf, type Tree } from "./house/source.ts";
import { cycles, impurities, strayTechnologies, untoldFaults, wrongDirections } from "./house/walls.ts";

const root = join(import.meta.dir, "..");

async function treeOf(pattern: string): Promise<Tree> {
  const paths = [...new Bun.Glob(pattern).scanSync({ cwd: root })].filter((path) => !path.endsWith(".d.ts")).sort();
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
  );
}

const house = await treeOf("{src,db}/**/*.ts");
const made = (files: Record<string, string>): Tree => new Map(Object.entries(files));

describe("the walls stand", () => {
  test("a file imports its own room, or rooms to its left", () => {
    expect(wrongDirections(house)).toEqual([]);
  });

  test("no file leads back to itself, types included", () => {
    expect(cycles(house)).toEqual([]);
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

  test("an import to the right is named with its line and its door, a type's as well", () => {
    const tree = made({ "src/store/a.ts": '\nimport type { B } from "../http/b.ts";\n' });
    const [finding = ""] = wrongDirections(tree);
    expect(finding).toStartWith("src/store/a.ts:2 imports src/http/b.ts. store sees inference, sse, protocol");
    expect(finding).toEndWith(
      "Door: let http call store, or take what is needed as an argument whose type store defines",
    );
    expect(wrongDirections(made({ "src/http/a.ts": 'import { b } from "../postgres/b.ts";' }))[0]).toContain(
      "src/store",
    );
    expect(wrongDirections(made({ "src/utils/a.ts": 'import { b } from "../sse/b.ts";' }))[0]).toContain("no room");
    expect(wrongDirections(made({ "src/http/a.ts": 'import { b } from "../store/b.ts";' }))).toEqual([]);
    expect(wrongDirections(made({ "src/main.ts": 'import { b } from "./postgres/b.ts";' }))).toEqual([]);
  });

  test("a circle of types is a circle", () => {
    const tree = made({
      "src/sse/a.ts": 'import type { B } from "./b.ts";',
      "src/sse/b.ts": 'import { c } from "./c.ts";',
      "src/sse/c.ts": 'export type { A } from "./a.ts";',
    });
    expect(cycles(tree)).toHaveLength(1);
    expect(cycles(tree)[0]).toStartWith("src/sse/a.ts -> src/sse/b.ts -> src/sse/c.ts -> src/sse/a.ts");
  });

  test("a technology outside its room is named with its door", () => {
    const tree = made({
      "src/cli/a.ts": 'import { drizzle } from "drizzle-orm/pglite";\nconst r = await import("ioredis");',
      "src/protocol/openai-chat/decode.ts": 'import Type from "typebox";',
      "src/protocol/openai-chat/contract.ts": 'import Type from "typebox";',
      "src/postgres/a.ts": 'import postgres from "postgres";',
    });
    expect(strayTechnologies(tree).map((line) => line.split(" ")[0])).toEqual([
      "src/cli/a.ts:1",
      "src/cli/a.ts:2",
      "src/protocol/openai-chat/decode.ts:1",
    ]);
  });

  test("a clock in a pure file is seen; in a comment, a text or another's method it is none", () => {
    const tree = made({
      "src/sse/a.ts": "export const a = () => Date.now();",
      "src/sse/b.ts": '// Date.now\nexport const b = (c: { fetch(): void }) => [c.fetch(), "Math.random"];',
      "src/auth/c.ts": "/** Keys. Pure. */\nexport const c = () => crypto.randomUUID();",
      "src/auth/d.ts": "export const d = () => crypto.randomUUID();",
      "src/sse/e.ts": 'import { readFileSync } from "node:fs";\nexport const e = readFileSync;',
    });
    expect(impurities(tree).map((line) => line.split(" ")[0])).toEqual([
      "src/sse/a.ts",
      "src/auth/c.ts",
      "src/sse/e.ts:1",
    ]);
    expect(codeOf("const a: string = 'process';")).not.toContain("process");
  });

  test("a fault without a test or a line is named twice", () => {
    const tests = made({ "test/a.test.ts": 'expect(code).toBe("one")' });
    expect(untoldFaults(["one", "two"], tests, "| `one` |")).toHaveLength(2);
  });
});

test("the five largest files and functions, to look at", async () => {
  const all = new Map([...house, ...(await treeOf("{test,scripts,bench}/**/*.ts"))]);
  const files = [...all].map(([path, source]) => ({ path, name: "", lines: source.split("\n").length }));
  const functions = [...house].flatMap(([path, source]) => functionsOf(path, source));
  for (const [title, extents] of Object.entries({ files, functions })) {
    const largest = extents.sort((a, b) => b.lines - a.lines).slice(0, 5);
    console.log(
      `largest ${title}: ${largest.map(({ path, name, lines }) => `${path} ${name} ${lines}`.replace("  ", " ")).join(", ")}`,
    );
  }
});
