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
        models.map(({ input }) => input?.bytes),
        models.map(({ input }) => input?.template),
        models.map(({ output }) => output?.tokens),
        models.map(({ output }) => output?.deltas),
        models.map(({ output }) => output?.codeUnits),
        models.map(({ output }) => output?.wholeTokens),
        models.map(({ output }) => output?.wholeCodeUnits),
      ]);
    },
  };
}

interface CalibrationRow {
  model_id: string;
  input_ratio: number | null;
  input_spread: number | null;
  input_bytes: number | null;
  input_template: number | null;
  output_tokens: number | null;
  output_deltas: number | null;
  output_code_units: number | null;
  output_whole_tokens: number | null;
  output_whole_code_units: number | null;
}

function inputOf(row: CalibrationRow) {
  const { input_ratio: ratio, input_spread: spread, input_bytes: bytes, input_template: template } = row;
  if (ratio === null || spread === null || bytes === null || template === null) return null;
  return { ratio, spread, bytes, template };
}

function outputOf(row: CalibrationRow) {
  const { output_tokens: tokens, output_deltas: deltas, output_code_units: codeUnits } = row;
  const { output_whole_tokens: wholeTokens, output_whole_code_units: wholeCodeUnits } = row;
  if (tokens === null || deltas === null || codeUnits === null || wholeTokens === null || wholeCodeUnits === null)
    return null;
  return { tokens, deltas, codeUnits, wholeTokens, wholeCodeUnits };
}

const reading = `
  select * from (select * from model_calibration order by updated_at desc, model_id limit $1) latest
  order by updated_at, model_id`;

const columnNames = [
  "input_ratio",
  "input_spread",
  "input_bytes",
  "input_template",
  "output_tokens",
  "output_deltas",
  "output_code_units",
  "output_whole_tokens",
  "output_whole_code_units",
];
const columns = columnNames.join(", ");

/** In the order of the ids, so that nodes that write the same models wait for each other and never in a circle. */
const writing = `
  insert into model_calibration as known (model_id, ${columns}, updated_at)
  select model_id, ${columns}, store_now()
  from unnest($1::text[], ${columnNames.map((_, at) => `$${at + 2}::float8[]`).join(", ")})
    as learned (model_id, ${columns})
  order by model_id
  on conflict (model_id) do update set
    ${columnNames.map((name) => `${name} = coalesce(excluded.${name}, known.${name})`).join(",\n    ")},
    updated_at = excluded.updated_at`;
