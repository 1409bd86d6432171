/**
 * How many tokens an answer has so far, before its engine reports. What is streamed is the larger of its deltas and its
 * code units divided by the model's ratio; a part that came whole has one delta, and is counted by its code units. Reports
 * calibrate both, each apart: an engine that sends a token a delta is counted by deltas alone, exactly.
 *
 * A delta is one `part-delta` of the centre, whatever frames it came in. A code unit is one of UTF-16, which is what a string's
 * length tells at no cost: the ratio is learned in the same measure, so bytes would be no truer.
 */

import type { OutputSums } from "../store/calibration.ts";
import type { Amount } from "./forwarded.ts";
import { type Kept, learned, models_learned_max } from "./learned.ts";

/** What was forwarded of an answer. */
export interface Sent {
  streamed: Readonly<Amount>;
  whole: Readonly<Amount>;
}

export interface OutputCalibration {
  /** Tokens of what was forwarded. */
  tokens(model: string, sent: Sent): number;
  /** An engine's report of a complete answer, as far as it is about what was sent. */
  observe(model: string, observed: Sent & { tokens: number }): void;
  /** The sums of each model, to be kept over a restart. */
  sums: Kept<OutputSums>;
}

/** Before the first report: no tokenizer in use averages more code units a token than this. */
export const uncalibrated_code_units_per_token = 16;
/** Older observations fade, so that a changed engine is learned. */
const tokens_remembered = 200_000;
/** No sum that fades comes near it. */
const sum_max = 1e9;
/** No text has more tokens for a code unit than this: most of what is reported beyond it was never sent. */
const tokens_per_code_unit_max = 3;

const nothing: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, wholeTokens: 0, wholeCodeUnits: 0 });

export function outputCalibration(): OutputCalibration {
  const models = learned(models_learned_max, isPlausible);
  return {
    tokens(model, { streamed, whole }) {
      const known = models.get(model) ?? nothing;
      return streamedTokens(known, streamed) + wholeTokens(known, whole);
    },
    observe(model, { tokens, streamed, whole }) {
      const { deltas } = streamed;
      const codeUnits = streamed.codeUnits + whole.codeUnits;
      const seen: OutputSums =
        whole.deltas === 0
          ? { ...nothing, tokens, deltas, codeUnits }
          : { ...nothing, wholeTokens: tokens, wholeCodeUnits: codeUnits };
      if (!isPlausible(seen)) return;
      const known = models.get(model) ?? nothing;
      const fade = known.tokens > tokens_remembered ? 0.5 : 1;
      const wholeFade = known.wholeTokens > tokens_remembered ? 0.5 : 1;
      models.learn(model, {
        tokens: known.tokens * fade + seen.tokens,
        deltas: known.deltas * fade + seen.deltas,
        codeUnits: known.codeUnits * fade + seen.codeUnits,
        wholeTokens: known.wholeTokens * wholeFade + seen.wholeTokens,
        wholeCodeUnits: known.wholeCodeUnits * wholeFade + seen.wholeCodeUnits,
      });
    },
    sums: models,
  };
}

function streamedTokens(known: OutputSums, { deltas, codeUnits }: Amount): number {
  if (known.tokens === 0) return Math.max(deltas, Math.ceil(codeUnits / uncalibrated_code_units_per_token));
  if (known.tokens <= known.deltas * 1.01) return deltas;
  return Math.max(deltas, Math.ceil((codeUnits * known.tokens) / known.codeUnits));
}

/** By all that is known of the model's code units: a text has as many tokens either way. */
function wholeTokens(known: OutputSums, { deltas, codeUnits }: Amount): number {
  const tokens = known.tokens + known.wholeTokens;
  if (tokens === 0) return Math.max(deltas, Math.ceil(codeUnits / uncalibrated_code_units_per_token));
  return Math.max(deltas, Math.round((codeUnits * tokens) / (known.codeUnits + known.wholeCodeUnits)));
}

function isPlausible({ tokens, deltas, codeUnits, wholeTokens, wholeCodeUnits }: OutputSums): boolean {
  const isStreamed = isRatio(tokens, codeUnits) && deltas >= 1 && deltas <= sum_max;
  const isNone = tokens === 0 && deltas === 0 && codeUnits === 0;
  const isWhole = isRatio(wholeTokens, wholeCodeUnits);
  const isNoneWhole = wholeTokens === 0 && wholeCodeUnits === 0;
  return (isStreamed || isNone) && (isWhole || isNoneWhole) && !(isNone && isNoneWhole);
}

function isRatio(tokens: number, codeUnits: number): boolean {
  return isCount(tokens) && isCount(codeUnits) && tokens <= codeUnits * tokens_per_code_unit_max;
}

function isCount(sum: number): boolean {
  return sum >= 1 && sum <= sum_max;
}
