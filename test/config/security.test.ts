/** docs/security.md names every limit with its default, and tests that are there. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { filled } from "../../src/config/settings/row.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { root } from "./reading.ts";

const page = readFileSync(join(root, "docs/security.md"), "utf8");

test("every limit of the service stands there with its default, and no other", () => {
  const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (\d+) \|/gm)].map(([, name, value]) => [name!, Number(value)]);
  expect(Object.fromEntries(rows)).toEqual(filled(sections.limits.properties));
});

test("the tests that it names are there, one in every row of a bound", () => {
  const bounds = page.slice(page.indexOf("## What is bounded"), page.indexOf("## Where the parts"));
  const rows = bounds.split("\n").filter((line) => line.startsWith("| ") && !/^\| (setting|what) \|/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) {
    const file = /`(test\/\S+\.test\.ts)` \|$/.exec(row)?.[1] ?? `none in ${row}`;
    expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  }
});
