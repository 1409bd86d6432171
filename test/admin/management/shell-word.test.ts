/**
 * Words in the command lines that Sluice prints keep their meaning, whatever characters a name contains. A real shell
 * parses them.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { quoted } from "../../../console/core/command-line.ts";
import { shellWord } from "../../../src/admin/management/shell-word.ts";

const hostile = [
  ...["", " ", "it's", "''", "a'b'c", '"', "\\", "\\'", "a\nb", "\t", "$HOME", "$(echo hurt)", "`echo hurt`", "!!"],
  ...["#x", "*", "?", "~", "~root", "a;b", "a&b", "a|b", ">x", "<x", "{a,b}", "[a]", "a=b", "=ls", "FOO=bar", "-x"],
  ...["é", "日本"],
];

/** The words as `sh` passes them to a program. */
function readBySh(words: readonly string[]): string[] {
  const script = `printf '%s\\0' ${words.join(" ")}`;
  const { stdout, stderr, exitCode } = Bun.spawnSync(["sh", "-c", script]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  return stdout.toString().split("\0").slice(0, -1);
}

test.each([
  ["the command line", shellWord],
  ["the console", quoted],
])("a shell reads the words of %s as they are", (_, word) => {
  expect(readBySh(hostile.map(word))).toEqual(hostile);
  const text = fc.string({ unit: "grapheme", maxLength: 20 }).filter((one) => !one.includes("\0"));
  const ascii = fc.string({ unit: "binary-ascii", maxLength: 20 }).map((one) => one.replaceAll("\0", ""));
  const words = fc.array(fc.oneof(text, ascii), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(words, (all) => expect(readBySh(all.map(word))).toEqual(all)),
    { numRuns: 10 },
  );
});

test("ordinary names need no quotes", () => {
  for (const name of ["acme", "build-server", "ann@acme.example", "https://sluice.example:8443", "openai/gpt-5"])
    expect(shellWord(name)).toBe(name);
});
