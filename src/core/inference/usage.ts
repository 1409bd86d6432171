/** Token counts of one request. The classes are disjoint: input excludes tokens that were cached or written to a cache. */
export interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  /** Output tokens, those of reasoning included. */
  outputTokens: number;
  reasoningTokens: number;
  /**
   * The source of the counts: the engine; this service's own count (with a tokenizer, or one token a delta); or an
   * estimate from sizes.
   */
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

/** All tokens that the model read, cached or not. */
export function promptTokens(usage: Usage): number {
  return usage.inputTokens + usage.cachedInputTokens + usage.cacheWriteTokens;
}

/** The reason not to believe the input or the output of an engine's report: docs/metering.md. */
export type ReportFlaw =
  /** A count is not a whole number, or is negative. */
  | "malformed"
  | "missing"
  /** There are more cached tokens than the prompt has, or more reasoning tokens than the output has. */
  | "part_above_whole"
  | "above_context"
  | "above_cap"
  | "below_forwarded"
  | "decreasing";

/** The halves of a report (input and output) that are rejected, each with the first reason. */
export interface ReportFlaws {
  input?: ReportFlaw;
  output?: ReportFlaw;
}

/** A report that was rejected in part, with the engine's value of each count as short, printable ASCII. */
export interface RejectedReport extends ReportFlaws {
  said: Record<string, number | string>;
}
