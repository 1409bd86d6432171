// db/schema.ts says what the migrations made: the same tables, columns, types and nullability, on both databases.

import { expect, setDefaultTimeout, test } from "bun:test";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import * as schema from "../../db/schema.ts";
import type { Database } from "../../src/postgres/database.ts";
import { kinds } from "./databases.ts";

// Starting a database takes half a second, and many times that on a machine that does much else.
setDefaultTimeout(60_000);

for (const { kind, open } of kinds) {
  test(`the schema is what the migrations made on ${kind}`, async () => {
    const { db, drop } = await open();
    try {
      expect(await made(db)).toEqual(declared());
    } finally {
      await drop();
    }
  });
}

type Shape = Record<string, string[]>;

function declared(): Shape {
  const tables = Object.values(schema).filter((value) => is(value, PgTable));
  return sorted(
    tables.map((table) => {
      const { name, columns } = getTableConfig(table);
      return [name, columns.map((one) => described(one.name, one.getSQLType(), one.notNull || one.primary))];
    }),
  );
}

/** Partitions are their parent's affair, and the list of applied migrations the migrator's. */
async function made(db: Database): Promise<Shape> {
  const rows = await db.query<{ table: string; column: string; type: string; required: boolean }>(`
    select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type,
      a.attnotnull as required
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attnum > 0 and not a.attisdropped and c.relname <> 'schema_migration'`);
  const tables = Map.groupBy(rows, (row) => row.table);
  return sorted(
    [...tables].map(([name, columns]) => [name, columns.map((one) => described(one.column, one.type, one.required))]),
  );
}

function described(name: string, type: string, required: boolean): string {
  return `${name} ${type.replace("timestamp with time zone", "timestamptz").replace(/^timestamp.* with time zone/, "timestamptz")}${required ? " not null" : ""}`;
}

function sorted(tables: [string, string[]][]): Shape {
  return Object.fromEntries(tables.map(([name, columns]) => [name, columns.sort()] as const).sort());
}
