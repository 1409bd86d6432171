/**
 * Whether an engine's report is taken as it is. An engine's word has bounds: what cannot be true is not believed, and our
 * count stands in its place. Each half is judged by itself. The table is in docs/metering.md. Pure.
 */
import {
  promptTokens,
  type RejectedReport,
  type ReportFlaw,
  type ReportFlaws,
  type Usage,
} from "../inference/usage.ts";

/** A report as its protocol had it: `rejected` names what is no count. */
export interface RawReport {
  usage: Usage;
  rejected?: RejectedReport | undefined;
}

/** The facts of the answer when the report came. */
export interface Facts {
  /** The model's context. */
  contextTokens: number;
  /** The most output that was asked for: the request's cap or the model's, whichever is less. */
  outputTokensCap: number;
  /** The deltas that were forwarded until then. */
  deltas: number;
  codeUnits: number;
  /** Our count of that. */
  countedTokens: number;
  /** The largest output that was reported and believed since output began. */
  reportedTokens: number;
}

/**
 * An honest count of what was forwarded is not below these: engines may send a delta for each character, which are four to
 * five a token in prose; and no tokenizer averages more than sixteen code units a token, which is half of the other.
 */
export const deltas_per_token_max = 8;
export const code_units_per_token_max = 32;

/** Null: it is believed. */
export function rejectionOf({ usage, rejected }: RawReport, facts: Facts): RejectedReport | null {
  const input = rejected?.input ?? inputFlaw(usage, facts);
  const output = rejected?.output ?? outputFlaw(usage, facts);
  if (!input && !output) return null;
  const flaws: ReportFlaws = {};
  if (input) flaws.input = input;
  if (output) flaws.output = output;
  return { ...flaws, said: rejected?.said ?? reportedIn(usage) };
}

/** Input above our estimate may be honest (images are, and templates); what the model cannot read is not. */
function inputFlaw(usage: Usage, { contextTokens }: Facts): ReportFlaw | null {
  return promptTokens(usage) > contextTokens ? "above_context" : null;
}

/** Output above our count may be honest, up to the cap: reasoning that is not shown. */
function outputFlaw({ outputTokens }: Usage, facts: Facts): ReportFlaw | null {
  const { deltas, codeUnits, countedTokens } = facts;
  // An engine may pass over its cap; what was forwarded shows it.
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
