-- Estimates that are learned from the reports of engines and survive a restart: src/store/calibration.ts. The reader
-- judges whether they are plausible.

-- Tokens a byte of text, the mean distance of single inputs from that, the bytes that the ratio rests on, and the tokens that
-- are there without any text.
create table input_calibration (
  model_id text primary key,
  ratio double precision not null,
  spread double precision not null,
  bytes double precision not null,
  template double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- Sums over complete answers of a route, an upstream and its model; older ones have faded. Code units are of UTF-16. `whole`
-- are answers that were not streamed.
create table output_calibration (
  route text primary key,
  tokens double precision not null,
  deltas double precision not null,
  code_units double precision not null,
  whole_tokens double precision not null,
  whole_code_units double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);
