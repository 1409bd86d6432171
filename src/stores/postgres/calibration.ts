/** The calibrations of models and routes, over SQL: a table for each, a row for each name. */
import type { Calibrations, CalibrationTable } from "../../core/store/calibration.ts";
import type { Querying } from "./database.ts";

export function calibrations(db: Querying): Calibrations {
  return {
    inputs: shelf(db, "input_calibration", "model_id", {
      ratio: "ratio",
      spread: "spread",
      bytes: "bytes",
      template: "template",
    }),
    outputs: shelf(db, "output_calibration", "route", {
      tokens: "tokens",
      deltas: "deltas",
      codeUnits: "code_units",
      // These columns have names from before their meaning changed.
      textTokens: "whole_tokens",
      textCodeUnits: "whole_code_units",
    }),
  };
}

/** Makes the store of one table of calibrations. `columns`: for each number of a calibration, its column. */
function shelf<Name extends string>(
  db: Querying,
  table: string,
  key: string,
  columns: Record<Name, string>,
): CalibrationTable<Record<Name, number>> {
  const names = Object.keys(columns) as Name[];
  const all = names.map((name) => columns[name]).join(", ");
  const reading = `
    select * from (select * from ${table} order by updated_at desc, ${key} limit $1) latest
    order by updated_at, ${key}`;
  /** Rows are written in the order of their names, so that nodes that write the same rows do not deadlock. */
  const writing = `
    insert into ${table} (${key}, ${all}, updated_at)
    select ${key}, ${all}, store_now()
    from unnest($1::text[], ${names.map((_, at) => `$${at + 2}::float8[]`).join(", ")}) as learned (${key}, ${all})
    order by ${key}
    on conflict (${key}) do update set
      ${names.map((name) => `${columns[name]} = excluded.${columns[name]}`).join(", ")}, updated_at = excluded.updated_at`;
  return {
    async read(names_max) {
      const rows = await db.query<Record<string, unknown>>(reading, [names_max]);
      return rows.map((row) => {
        const numbers = Object.fromEntries(names.map((name) => [name, row[columns[name]]])) as Record<Name, number>;
        return [String(row[key]), numbers];
      });
    },
    async write(learned) {
      if (learned.size === 0) return;
      const rows = [...learned.values()];
      await db.query(writing, [[...learned.keys()], ...names.map((name) => rows.map((row) => row[name]))]);
    },
  };
}
