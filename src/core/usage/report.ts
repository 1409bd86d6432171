/**
 * Decides whether an engine's report is accepted. A report that cannot be true is not believed, and our count is used
 * instead. Input and output are judged separately. The table is in docs/metering.md. Pure.
 */
import {
  promptTokens,
  type RejectedReport,
  type ReportFlaw,
  type ReportFlaws,
  type Usage,
} from "../inference/usage.ts";

/** A report as its protocol carried it. `rejected` names the counts that are not numbers. */
export interface RawReport {
  usage: Usage;
  rejected?: RejectedReport | undefined;
}

/** The facts about the answer when the report arrived. */
export interface Facts {
  /** The model's context. */
  contextTokens: number;
  /** The most output that was asked for: the request's cap or the model's, whichever is less. */
  outputTokensCap: number;
  /** The deltas that were forwarded until then. */
  deltas: number;
  codeUnits: number;
  /** Our count of those. */
  countedTokens: number;
  /** The largest output that was reported and believed since output began. */
  reportedTokens: number;
}

/**
 * An honest count of what was forwarded is not below these bounds. Engines may send a delta for each character, of
 * which prose has four to five a token; and no tokenizer averages more than sixteen code units a token. Half of that is
 * allowed.
 */
export const deltas_per_token_max = 8;
export const code_units_per_token_max = 32;

/** Null if it is believed. */
export function rejectionOf({ usage, rejected }: RawReport, facts: Facts): RejectedReport | null {
  const input = rejected?.input ?? inputFlaw(usage, facts);
  const output = rejected?.output ?? outputFlaw(usage, facts);
  if (!input && !output) return null;
  const flaws: ReportFlaws = {};
  if (input) flaws.input = input;
  if (output) flaws.output = output;
  return { ...flaws, said: rejected?.said ?? reportedIn(usage) };
}

/**
 * Input above our estimate may be honest, because of images and templates. Input that exceeds the model's context is
 * not.
 */
function inputFlaw(usage: Usage, { contextTokens }: Facts): ReportFlaw | null {
  return promptTokens(usage) > contextTokens ? "above_context" : null;
}

/** Output above our count may be honest up to the cap, because of reasoning that is not shown. */
function outputFlaw({ outputTokens }: Usage, facts: Facts): ReportFlaw | null {
  const { deltas, codeUnits, countedTokens } = facts;
  // An engine may exceed its cap, which the forwarded output shows.
  if (outputTokens > Math.max(facts.outputTokensCap, countedTokens)) return "above_cap";
  const least = codeUnits === 0 ? 0 : Math.max(1, deltas / deltas_per_token_max, codeUnits / code_units_per_token_max);
  if (outputTokens < least) return "below_forwarded";
  return outputTokens < facts.reportedTokens ? "decreasing" : null;
}

function reportedIn(usage: Usage): RejectedReport["said"] {
  return {
    prompt_tokens: promptTokens(usage),
    cached_tokens: usage.cachedInputTokens,
    written_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
  };
}
