/** Token counts of one request. The classes are disjoint: input excludes what was cached or written to a cache. */
export interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  /** Reasoning included. */
  outputTokens: number;
  /** Of the output tokens, those spent on reasoning. */
  reasoningTokens: number;
  /** Who counted: the engine, we (a token a delta), or an estimate from code units. */
  source: UsageSource;
}

export type UsageSource = "reported" | "counted" | "estimated";

export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  source: "counted",
});

/** All tokens that the model read, whatever they cost. */
export function promptTokens(usage: Usage): number {
  return usage.inputTokens + usage.cachedInputTokens + usage.cacheWriteTokens;
}
