/**
 * How many tokens a stream has produced so far, before its engine reports: the larger of its deltas and its code units divided
 * by the model's ratio. Reports calibrate both: an engine that sends a token a delta is counted by deltas alone, exactly.
 *
 * A delta is one `part-delta` of the centre, whatever frames it came in. A code unit is one of UTF-16, which is what a string's
 * length tells at no cost: the ratio is learned in the same measure, so bytes would be no truer.
 */

import type { OutputSums } from "../store/calibration.ts";
import { type Kept, learned, models_learned_max } from "./learned.ts";

export interface OutputCalibration {
  /** Tokens produced by `deltas` deltas with `codeUnits` UTF-16 code units in all. */
  tokens(model: string, deltas: number, codeUnits: number): number;
  /** An engine's report of a whole stream, for the text that was sent. */
  observe(model: string, observed: OutputSums): void;
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

export function outputCalibration(): OutputCalibration {
  const models = learned(models_learned_max, isPlausible);
  return {
    tokens(model, deltas, codeUnits) {
      const known = models.get(model);
      if (!known) return Math.max(deltas, Math.ceil(codeUnits / uncalibrated_code_units_per_token));
      if (known.tokens <= known.deltas * 1.01) return deltas;
      return Math.max(deltas, Math.ceil((codeUnits * known.tokens) / known.codeUnits));
    },
    observe(model, observed) {
      if (!isPlausible(observed)) return;
      const { tokens, deltas, codeUnits } = observed;
      const known = models.get(model) ?? { tokens: 0, deltas: 0, codeUnits: 0 };
      const fade = known.tokens > tokens_remembered ? 0.5 : 1;
      models.learn(model, {
        tokens: known.tokens * fade + tokens,
        deltas: known.deltas * fade + deltas,
        codeUnits: known.codeUnits * fade + codeUnits,
      });
    },
    sums: models,
  };
}

function isPlausible({ tokens, deltas, codeUnits }: OutputSums): boolean {
  const areCounts = [tokens, deltas, codeUnits].every((sum) => sum >= 1 && sum <= sum_max);
  return areCounts && tokens <= codeUnits * tokens_per_code_unit_max;
}
