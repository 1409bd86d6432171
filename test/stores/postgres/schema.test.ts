// The migrations create the same tables, views and indexes on both kinds of database, and db/schema.ts describes its
// columns correctly: names, types and nullability.

import { expect, setDefaultTimeout, test } from "bun:test";
import { type Column, is } from "drizzle-orm";
import { getTableConfig, getViewConfig, PgTable, PgView } from "drizzle-orm/pg-core";
import * as schema from "../../../db/schema.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { kinds } from "./databases.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

test("the schema is what the migrations make, the same on both databases", async () => {
  const shapes = await Promise.all(
    kinds.map(async ({ open }) => {
      const { db, drop } = await open();
      return made(db).finally(drop);
    }),
  );
  for (const shape of shapes) expect(shape).toEqual(shapes[0]!);
  for (const [name, columns] of declared()) expect(shapes[0]![name]).toEqual(expect.arrayContaining(columns));
});

type Shape = Record<string, string[]>;

function declared(): [name: string, columns: string[]][] {
  const all = Object.values(schema);
  const views = all.filter((value) => is(value, PgView)).map(getViewConfig);
  const tables = all.filter((value) => is(value, PgTable)).map(getTableConfig);
  return [
    ...views.map(({ name, selectedFields }): [string, string[]] => [
      name,
      Object.values(selectedFields).map((one) => described((one as Column).name, (one as Column).getSQLType(), false)),
    ]),
    ...tables.map(({ name, columns }): [string, string[]] => [
      name,
      columns.map((one) => described(one.name, one.getSQLType(), one.notNull || one.primary)),
    ]),
  ];
}

/** SQL that excludes partitions, which are like their parent table, and the migrator's table of applied migrations. */
const ours = "c.relnamespace = 'public'::regnamespace and not c.relispartition and c.relname <> 'schema_migration'";

async function made(db: Database): Promise<Shape> {
  const columns = await db.query<{ table: string; column: string; type: string; required: boolean }>(`
    select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type,
      a.attnotnull as required
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where ${ours} and c.relkind in ('r', 'p', 'v') and a.attnum > 0 and not a.attisdropped`);
  const indexes = await db.query<{ table: string; index: string }>(`
    select c.relname as table,
      case when x.indisprimary then 'primary key' when x.indisunique then 'unique' else 'index ' || i.relname end
        || substring(regexp_replace(pg_get_indexdef(x.indexrelid), ' (WITH|WHERE) .*', '') from ' \\(.*\\)$') as index
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
    where ${ours}`);
  const lines = [
    ...columns.map((one) => ({ table: one.table, line: described(one.column, one.type, one.required) })),
    ...indexes.map(({ table, index }) => ({ table, line: index })),
  ];
  return sorted(
    [...Map.groupBy(lines, ({ table }) => table)].map(([name, some]) => [name, some.map(({ line }) => line)]),
  );
}

function described(name: string, type: string, required: boolean): string {
  return `${name} ${type.replace("timestamp with time zone", "timestamptz").replace(/^timestamp.* with time zone/, "timestamptz")}${required ? " not null" : ""}`;
}

function sorted(tables: [string, string[]][]): Shape {
  return Object.fromEntries(tables.map(([name, columns]) => [name, columns.sort()] as const).sort());
}
