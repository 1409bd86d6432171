/** In contracts, help and pages, amounts are money: none of them counts in a unit of its own, such as nanos. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const pages = ["README.md", "contract/*.json", "docs/*.md", "docs/design/*.md"].flatMap((pattern) =>
  [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort(),
);

/** Texts in which the words mean something else: lengths of text, files of systemd, names of models. */
const allowed = [
  /UTF-16 code units?/gi,
  /code units?/gi,
  /systemd units?/gi,
  /\bThe unit (listens|runs)\b/g,
  /\bWe ran the unit under systemd\b/g,
  /\ba unit's `TasksMax=`/g,
  /price_per_million_units/g,
  /[\w./-]*nano-9b[\w.-]*/g,
];
const counted = /\bmicro-?units?\b|\b\w*_units?\b|\bunits?\b|\b\w*_nanos?\b|\bnanos?\b|\b\w+Nanos\b|\b\w+Units\b/i;

test("contracts, help and pages count in money, and in no unit of their own", async () => {
  const found: string[] = [];
  for (const page of pages) {
    const lines = (await Bun.file(join(root, page)).text()).split("\n");
    for (const [index, line] of lines.entries()) {
      const rest = allowed.reduce((text, phrase) => text.replaceAll(phrase, ""), line);
      if (counted.test(rest)) found.push(`${page}:${index + 1}: ${line.trim().slice(0, 160)}`);
    }
  }
  expect(found).toEqual([]);
  expect(pages.length).toBeGreaterThan(30);
});
