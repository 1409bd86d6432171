// docs/scale.md says of each table how it could be spread, and of each function whose rows it is about: none is left out,
// and the tables that a function names are those that its text names.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../../../db/migrate.ts";

const root = join(import.meta.dir, "../../..");
const sql = migrations.map((one) => one.sql.replace(/--.*$/gm, "")).join("\n");
const page = readFileSync(join(root, "docs/scale.md"), "utf8");

const tables = [...sql.matchAll(/create (?:unlogged )?table (\w+)/g)].map(([, name]) => name!);
/** What is inserted into one, or read from it, concerns the tables that it reads. */
const views = [...sql.matchAll(/create (?:or replace )?view (\w+) as ([\s\S]*?);/g)].map(
  ([, name, body]) => [name!, body!] as const,
);
/** One that a later migration replaced counts as it is now. */
const bodies = new Map(
  [...sql.matchAll(/create (?:or replace )?function (\w+)\s*\([\s\S]*?\bas \$\$([\s\S]*?)\$\$/g)].map(
    ([, name, body]) => [name!, body!] as const,
  ),
);

/** The cells of a table's rows, by the name in the first. */
function rowsUnder(head: string): Map<string, string[]> {
  const [, after = ""] = page.split(`${head}\n|---|---|---|\n`);
  const lines = after.split("\n\n", 1)[0]!.trim().split("\n");
  return new Map(
    lines.map((line) => {
      const [name = "", ...cells] = line.slice(2, -2).split(" | ");
      return [name.replaceAll("`", ""), cells];
    }),
  );
}

test("every table stands there once, and no other", () => {
  const rows = rowsUnder("| table | spread by | what Citus says |");
  expect([...rows.keys()].sort()).toEqual([...tables].sort());
});

test("every function stands there, with the tables that it names", () => {
  const rows = rowsUnder("| function | names | is about |");
  expect([...rows.keys()].sort()).toEqual([...bodies.keys()].sort());
  for (const [name, own] of bodies) {
    const names = (word: string) => new RegExp(`\\b(?:from|join|into|update|using|table only) ${word}\\b`);
    const body = [own, ...views.flatMap(([view, text]) => (names(view).test(own) ? [text] : []))].join("\n");
    const named = tables.filter((table) => names(table).test(body));
    const [cell = "", about = ""] = rows.get(name)!;
    expect([name, [...cell.matchAll(/`(\w+)`/g)].map(([, table]) => table!).sort()]).toEqual([name, named.sort()]);
    expect([name, /^(One|Batch|All|Server|None)\b/.test(about)]).toEqual([name, true]);
  }
});

test("what is about one organization asks for nothing that has none", () => {
  const spread = rowsUnder("| table | spread by | what Citus says |");
  for (const [name, [cell = "", about = ""]] of rowsUnder("| function | names | is about |")) {
    if (!/^(One|Batch)\b/.test(about)) continue;
    for (const [, table] of cell.matchAll(/`(\w+)`/g)) {
      const [by = ""] = spread.get(table!)!;
      expect([name, table, /_id`$|a copy everywhere$/.test(by)]).toEqual([name, table, true]);
    }
  }
});
