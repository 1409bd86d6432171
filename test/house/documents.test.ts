/** The total number of words in all documents is limited by sizes.json, so that a new page must replace an old one. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import sizes from "./sizes.json";

/**
 * The Markdown files of the repository, including generated ones. The changelog grows with each version, and is not
 * counted.
 */
const documents = ["*.md", "{bench,docs,proof,test}/**/*.md"]
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync()])
  .filter((path) => path !== "CHANGELOG.md");

const wordsIn = (text: string) => text.split(/\s+/).filter((word) => word !== "").length;

test("all documents have at most the words of the limit, and the limit is near", () => {
  const found = documents.map((path) => [path, wordsIn(readFileSync(path, "utf8"))] as const);
  const all = found.reduce((sum, [, words]) => sum + words, 0);
  const longest = found.toSorted(([, one], [, other]) => other - one).slice(0, 5);
  console.log(`words: ${all}; the longest: ${longest.map(([path, words]) => `${path} ${words}`).join(", ")}`);
  expect(documents.length).toBeGreaterThan(30);
  const advice =
    "Cut words of other pages, generated ones or not, or raise documents_words with a reason in docs/decisions.md.";
  expect(all, advice).toBeLessThanOrEqual(sizes.documents_words);
  expect(sizes.documents_words - all).toBeLessThan(3000);
});

test("a word is what stands between blanks, as `wc -w` counts", () => {
  expect(wordsIn("# A head\n\n| one | `two three` |\n")).toBe(9);
});
