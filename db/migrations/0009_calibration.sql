-- What was learned of models from their engines' reports, so that a restart does not forget it: src/store/calibration.ts.
-- What is plausible the reader judges; input and output are each known as a whole, or null.

create table model_calibration (
  model_id text primary key,
  -- Tokens a byte of text, the mean distance of single inputs from that, the bytes that the ratio rests on, and the tokens
  -- that are there without any text.
  input_ratio double precision,
  input_spread double precision,
  input_bytes double precision,
  input_template double precision,
  -- Sums over complete answers; older ones have faded. Code units are of UTF-16. `whole` are those that were not streamed.
  output_tokens double precision,
  output_deltas double precision,
  output_code_units double precision,
  output_whole_tokens double precision,
  output_whole_code_units double precision,
  updated_at timestamptz not null
) with (fillfactor = 50);
