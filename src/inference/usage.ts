/** Token counts of one request. The classes are disjoint: input excludes what was cached or written to a cache. */
export interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  /** Reasoning included. */
  outputTokens: number;
  /** Of the output tokens, those spent on reasoning. */
  reasoningTokens: number;
  /** Who counted: the engine, we (by tokens, or a token a delta), or an estimate from code units or bytes. */
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

/** Why half of an engine's report is not believed: docs/metering.md. */
export type ReportFlaw =
  /** Not a whole number from 0 up. */
  | "malformed"
  | "missing"
  /** Of the prompt more cached, or of the output more reasoning, than there is. */
  | "part_above_whole"
  | "above_context"
  | "above_cap"
  | "below_forwarded"
  | "decreasing";

/** The halves of a report that are not believed, each with the first reason. */
export interface ReportFlaws {
  input?: ReportFlaw;
  output?: ReportFlaw;
}

/** A report that was not taken as it is, and the engine's words for each count. They are short, printable ASCII. */
export interface RejectedReport extends ReportFlaws {
  said: Record<string, number | string>;
}
