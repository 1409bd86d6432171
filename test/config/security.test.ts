/** docs/security.md names every limit, and names only tests that exist. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sections } from "../../src/config/settings/sections.ts";
import { root } from "./reading.ts";

const page = readFileSync(join(root, "docs/security.md"), "utf8");

test("every limit of the service stands there, and no other", () => {
  const table = page.slice(page.indexOf("## What is bounded"), page.indexOf("Other bounds:"));
  const names = [...table.matchAll(/^\| (`[a-z_`, ]+`) \|/gm)].flatMap(([, cell]) =>
    cell!.replaceAll("`", "").split(", "),
  );
  expect(names.sort()).toEqual(Object.keys(sections.limits.properties).sort());
});

test("the tests that it names are there, one in every row of a bound", () => {
  const bounds = page.slice(page.indexOf("## What is bounded"), page.indexOf("## Where the parts"));
  const rows = bounds.split("\n").filter((line) => line.startsWith("| ") && !/^\| (settings|what) \|/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) {
    const file = /`(test\/\S+\.test\.ts)` \|$/.exec(row)?.[1] ?? `none in ${row}`;
    expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  }
});
