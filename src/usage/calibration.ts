/**
 * How many tokens a stream has produced so far, before its engine reports: the larger of its deltas and its letters divided
 * by the model's ratio. Reports calibrate both: an engine that sends a token a delta is counted by deltas alone, exactly.
 *
 * A delta is one `part-delta` of the centre, whatever frames it came in. A letter is a UTF-16 unit, which is what a string's
 * length tells at no cost: the ratio is learned in the same measure, so bytes would be no truer.
 */
interface Observed {
  tokens: number;
  deltas: number;
  letters: number;
}

export interface OutputCalibration {
  /** Tokens produced by `deltas` deltas of `letters` letters in all. */
  tokens(model: string, deltas: number, letters: number): number;
  /** An engine's report of a whole stream. */
  observe(model: string, observed: Observed): void;
}

/** Before the first report: no tokenizer in use averages more letters a token than this. */
export const uncalibrated_letters_per_token = 16;
/** Older observations fade, so that a changed engine is learned. */
const tokens_remembered = 200_000;

export function outputCalibration(): OutputCalibration {
  const models = new Map<string, Observed>();
  return {
    tokens(model, deltas, letters) {
      const known = models.get(model);
      if (!known) return Math.max(deltas, Math.ceil(letters / uncalibrated_letters_per_token));
      if (known.tokens <= known.deltas * 1.01) return deltas;
      return Math.max(deltas, Math.ceil((letters * known.tokens) / known.letters));
    },
    observe(model, { tokens, deltas, letters }) {
      if (tokens <= 0 || deltas <= 0 || letters <= 0) return;
      const known = models.get(model) ?? { tokens: 0, deltas: 0, letters: 0 };
      const fade = known.tokens > tokens_remembered ? 0.5 : 1;
      models.set(model, {
        tokens: known.tokens * fade + tokens,
        deltas: known.deltas * fade + deltas,
        letters: known.letters * fade + letters,
      });
    },
  };
}
