/**
 * Each code block of docs/clients.md is valid in its language, and so are the blocks of one client pasted one after
 * another into one file.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";

interface Section {
  client: string;
  /** The code blocks by language, in order. */
  blocks: Map<string, string[]>;
}

const page = readFileSync("docs/clients.md", "utf8");
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((text): Section => {
    const blocks = new Map<string, string[]>();
    for (const [, language = "", block = ""] of text.matchAll(/^```(\w*).*\n([\s\S]*?)^```$/gm))
      blocks.set(language, [...(blocks.get(language) ?? []), block]);
    return { client: text.split("\n", 1)[0]!, blocks };
  })
  .filter(({ blocks }) => blocks.size > 0);

function syntaxIn(words: string[], text: string): void {
  const { exitCode, stderr } = Bun.spawnSync(words, { stdin: new TextEncoder().encode(text) });
  if (exitCode !== 0) throw new Error(stderr.toString());
}

const python = Bun.which("python3");
/** Parses a text of each language, and throws if it is not valid. */
const languages: Record<string, (text: string) => unknown> = {
  toml: (text) => Bun.TOML.parse(text),
  json: (text) => JSON.parse(text),
  yaml: (text) => parseYaml(text, { strict: true, uniqueKeys: true }),
  sh: (text) => syntaxIn(["sh", "-n"], text),
  ts: (text) => new Bun.Transpiler({ loader: "ts" }).transformSync(text),
  python: (text) => python && syntaxIn([python, "-c", "import ast, sys; ast.parse(sys.stdin.read())"], text),
};
/** In these languages, a file has only one document, so a second block must be for another file. */
const oneText = ["json", "yaml"];

test("every block of the page names a language that is tried here", () => {
  const named = sections.flatMap(({ blocks }) => [...blocks.keys()]);
  expect(named.length).toBeGreaterThan(10);
  for (const language of named) expect(Object.keys(languages)).toContain(language);
});

describe.each(sections)("$client", ({ blocks }) => {
  test.each([...blocks])("its blocks in %s are right, each alone and all together", (language, texts) => {
    const check = languages[language]!;
    for (const text of texts) expect(() => check(text)).not.toThrow();
    if (oneText.includes(language)) expect(texts).toHaveLength(1);
    else expect(() => check(texts.join("\n"))).not.toThrow();
  });
});

test("a table of Codex that is pasted below another is still what it says", () => {
  const texts = sections.find(({ client }) => client === "Codex")?.blocks.get("toml") ?? [];
  expect(texts.length).toBeGreaterThan(1);
  const alone = texts.map((text) => Bun.TOML.parse(text) as Record<string, object>);
  const together = Bun.TOML.parse(texts.join("\n")) as Record<string, object>;
  const keys = alone.flatMap(Object.keys);
  expect(Object.keys(together).sort()).toEqual([...new Set(keys)].sort());
  expect(keys).toHaveLength(new Set(keys).size);
  for (const one of alone) expect(together).toMatchObject(one);
});
