/** What was learned of models, over SQL. */
import type { Calibrations } from "../store/calibration.ts";
import type { Database } from "./database.ts";

export function calibrations(db: Pick<Database, "query">): Calibrations {
  return {
    async read(models_max) {
      const rows = await db.query<CalibrationRow>(reading, [models_max]);
      return rows.map((row) => ({ model: row.model_id, input: inputOf(row), output: outputOf(row) }));
    },
    async write(models) {
      if (models.length === 0) return;
      await db.query(writing, [
        models.map(({ model }) => model),
        models.map(({ input }) => input?.ratio),
        models.map(({ input }) => input?.spread),
        models.map(({ output }) => output?.tokens),
        models.map(({ output }) => output?.deltas),
        models.map(({ output }) => output?.codeUnits),
      ]);
    },
  };
}

interface CalibrationRow {
  model_id: string;
  input_ratio: number | null;
  input_spread: number | null;
  output_tokens: number | null;
  output_deltas: number | null;
  output_code_units: number | null;
}

function inputOf({ input_ratio: ratio, input_spread: spread }: CalibrationRow) {
  return ratio === null || spread === null ? null : { ratio, spread };
}

function outputOf({ output_tokens: tokens, output_deltas: deltas, output_code_units: codeUnits }: CalibrationRow) {
  return tokens === null || deltas === null || codeUnits === null ? null : { tokens, deltas, codeUnits };
}

const reading = `
  select * from (select * from model_calibration order by updated_at desc, model_id limit $1) latest
  order by updated_at, model_id`;

/** In the order of the ids, so that nodes that write the same models wait for each other and never in a circle. */
const writing = `
  insert into model_calibration as known
    (model_id, input_ratio, input_spread, output_tokens, output_deltas, output_code_units, updated_at)
  select model_id, input_ratio, input_spread, output_tokens, output_deltas, output_code_units, store_now()
  from unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::float8[], $6::float8[])
    as learned (model_id, input_ratio, input_spread, output_tokens, output_deltas, output_code_units)
  order by model_id
  on conflict (model_id) do update set
    input_ratio = coalesce(excluded.input_ratio, known.input_ratio),
    input_spread = coalesce(excluded.input_spread, known.input_spread),
    output_tokens = coalesce(excluded.output_tokens, known.output_tokens),
    output_deltas = coalesce(excluded.output_deltas, known.output_deltas),
    output_code_units = coalesce(excluded.output_code_units, known.output_code_units),
    updated_at = excluded.updated_at`;
