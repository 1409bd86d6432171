/**
 * How many tokens a stream has produced so far, before its engine reports: the larger of its chunks and its bytes divided
 * by the model's ratio. Reports calibrate both: an engine that sends a token a chunk is counted by chunks alone, exactly.
 */
interface Observed {
  tokens: number;
  chunks: number;
  bytes: number;
}

export interface OutputCalibration {
  /** Tokens produced by `chunks` deltas of `bytes` bytes in all. */
  tokens(model: string, chunks: number, bytes: number): number;
  /** An engine's report of a whole stream. */
  observe(model: string, observed: Observed): void;
}

/** Before the first report: no tokenizer in use averages more bytes a token than this. */
const uncalibrated_bytes_per_token = 16;
/** Older observations fade, so that a changed engine is learned. */
const tokens_remembered = 200_000;

export function outputCalibration(): OutputCalibration {
  const models = new Map<string, Observed>();
  return {
    tokens(model, chunks, bytes) {
      const known = models.get(model);
      if (!known) return Math.max(chunks, Math.ceil(bytes / uncalibrated_bytes_per_token));
      if (known.tokens <= known.chunks * 1.01) return chunks;
      return Math.max(chunks, Math.ceil((bytes * known.tokens) / known.bytes));
    },
    observe(model, { tokens, chunks, bytes }) {
      if (tokens <= 0 || chunks <= 0 || bytes <= 0) return;
      const known = models.get(model) ?? { tokens: 0, chunks: 0, bytes: 0 };
      const fade = known.tokens > tokens_remembered ? 0.5 : 1;
      models.set(model, {
        tokens: known.tokens * fade + tokens,
        chunks: known.chunks * fade + chunks,
        bytes: known.bytes * fade + bytes,
      });
    },
  };
}
