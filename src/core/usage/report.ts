/**
 * Decides whether an engine's report is accepted. If it cannot be true, our count is used instead. Input and output are
 * judged separately. The table is in docs/metering.md. Pure.
 */
import {
  promptTokens,
  type RejectedReport,
  type ReportFlaw,
  type ReportFlaws,
  type Usage,
} from "../inference/usage.ts";

/** A report as the engine sent it. `rejected` names the values that are no counts. */
export interface RawReport {
  usage: Usage;
  rejected?: RejectedReport | undefined;
}

/** The facts about the answer when the report arrived. */
export interface Facts {
  /** The context of the model, in tokens. */
  contextTokens: number;
  /** The most output that was asked for: the request's cap or the model's, whichever is less. */
  outputTokensCap: number;
  /** The deltas that had been forwarded. */
  deltas: number;
  codeUnits: number;
  /** Our count of those deltas' tokens. */
  countedTokens: number;
  /** The largest output that was reported and believed since the output began. */
  reportedTokens: number;
}

/**
 * The bounds beyond which a report is too low to be honest. Engines may send a delta for each character, of which prose
 * has four to five a token, and no tokenizer averages more than sixteen code units a token; twice as many of either are
 * allowed.
 */
export const deltas_per_token_max = 8;
export const code_units_per_token_max = 32;

/** The rejected report with its flaws; null if it is believed. */
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
 * The flaw of the input, or null. More than our estimate may be honest, because of images and templates; more than the
 * model's context is not.
 */
function inputFlaw(usage: Usage, { contextTokens }: Facts): ReportFlaw | null {
  return promptTokens(usage) > contextTokens ? "above_context" : null;
}

/**
 * The flaw of the output, or null. More than our count may be honest up to the cap, because of reasoning that is not
 * sent.
 */
function outputFlaw({ outputTokens }: Usage, facts: Facts): ReportFlaw | null {
  const { deltas, codeUnits, countedTokens } = facts;
  // An engine may exceed its cap, if the forwarded output shows it.
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
