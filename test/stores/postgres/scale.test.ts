// Checks spread.json, which says how the database could be split by organization over several servers (docs/scale.md,
// Past one Postgres). For each table it has the column to split by; and it lists each function by the rows that it
// uses: those of One organization, of the organizations in a Batch, of All, of the Server itself, or None. No table and
// no function is missing.

import { expect, test } from "bun:test";
import { migrations } from "../../../db/migrate.ts";
import spread from "./spread.json";

const sql = migrations.map((one) => one.sql.replace(/--.*$/gm, "")).join("\n");
const spreadBy = new Map(Object.entries(spread.tables));
const { One, Batch, All, Server, None } = spread.functions;

const tables = [...sql.matchAll(/create (?:unlogged )?table (\w+)/g)].map(([, name]) => name!);
/** A function that uses a view also uses the tables of the view. */
const views = [...sql.matchAll(/create (?:or replace )?view (\w+) as ([\s\S]*?);/g)].map(
  ([, name, body]) => [name!, body!] as const,
);
/** If a later migration replaced a function, its latest definition counts. */
const bodies = new Map(
  [...sql.matchAll(/create (?:or replace )?function (\w+)\s*\([\s\S]*?\bas \$\$([\s\S]*?)\$\$/g)].map(
    ([, name, body]) => [name!, body!] as const,
  ),
);

/** The tables that a function uses, directly or through a view. */
function tablesOf(own: string): string[] {
  const names = (word: string) => new RegExp(`\\b(?:from|join|into|update|using|table only) ${word}\\b`);
  const body = [own, ...views.flatMap(([view, text]) => (names(view).test(own) ? [text] : []))].join("\n");
  return tables.filter((table) => names(table).test(body));
}

test("every table says by which column it could be spread", () => {
  expect([...spreadBy.keys()].sort()).toEqual([...tables].sort());
});

test("every function is about somebody's rows, and one without tables about none", () => {
  expect([...One, ...Batch, ...All, ...Server, ...None].sort()).toEqual([...bodies.keys()].sort());
  expect(None.filter((name) => tablesOf(bodies.get(name)!).length > 0)).toEqual([]);
});

test("a function about one organization reads no table that cannot be spread by organization", () => {
  for (const name of [...One, ...Batch]) {
    const fixed = tablesOf(bodies.get(name)!).filter((table) => !/_id$|a copy everywhere$/.test(spreadBy.get(table)!));
    expect([name, fixed]).toEqual([name, []]);
  }
});
