/** How much a request must hold before it may run: docs/design/usage.md, Holds. Pure. */
import type { Model, Prices } from "../inference/model.ts";
import { costOf } from "../inference/money.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Usage } from "../inference/usage.ts";
import { nanos_max } from "../store/ledger.ts";

/** The output tokens that are held at a time, and the fewest that are worth starting with. */
export const stepTokens = 4096;
const leastTokens = 256;

/** A request's tokens stay below this, and its nanos below `nanos_max`, whatever an engine reports. */
const tokens_max = 1e8;

export interface HoldPlan {
  inputNanos: number;
  outputTokens: number;
  outputTokens_min: number;
  /** The request's cap or the model's, whichever is less. */
  outputTokensCap: number;
}

/** The hold of a request: the input at the highest input price, and one step of output. */
export function holdFor(inputTokens: number, model: Model, request: InferenceRequest): HoldPlan {
  const { prices } = model;
  const searches = request.passed?.searches ?? 0;
  const dearest = Math.max(prices.input, prices.cachedInput, prices.cacheWrite);
  const outputTokensCap = Math.max(
    1,
    wholeUpTo(Math.min(request.outputTokens_max ?? Infinity, model.outputTokens_max), tokens_max),
  );
  return {
    inputNanos: wholeUpTo(
      costOf(wholeUpTo(inputTokens, tokens_max), dearest) + costOf(searches, prices.search ?? 0),
      nanos_max,
    ),
    // The hold of an unstreamed answer that is passed on cannot grow, so it covers the whole answer.
    outputTokens: request.passed && !request.stream ? outputTokensCap : Math.min(outputTokensCap, stepTokens),
    outputTokens_min: Math.min(outputTokensCap, leastTokens),
    outputTokensCap,
  };
}

/** The cost of the prompt of a usage, in nanos. */
export function promptNanos(usage: Usage, prices: Prices): number {
  const input = costOf(wholeUpTo(usage.inputTokens, tokens_max), prices.input);
  const cachedInput = costOf(wholeUpTo(usage.cachedInputTokens, tokens_max), prices.cachedInput);
  const cacheWrite = costOf(wholeUpTo(usage.cacheWriteTokens, tokens_max), prices.cacheWrite);
  return wholeUpTo(input + cachedInput + cacheWrite, nanos_max);
}

/** A usage that the ledger can record, whatever an engine reported: whole counts, none below zero. */
export function bookable(usage: Usage): Usage {
  const outputTokens = wholeUpTo(usage.outputTokens, tokens_max);
  return {
    inputTokens: wholeUpTo(usage.inputTokens, tokens_max),
    cachedInputTokens: wholeUpTo(usage.cachedInputTokens, tokens_max),
    cacheWriteTokens: wholeUpTo(usage.cacheWriteTokens, tokens_max),
    outputTokens,
    reasoningTokens: Math.min(wholeUpTo(usage.reasoningTokens, tokens_max), outputTokens),
    source: usage.source,
  };
}

/** A whole number from 0 to `max`. Anything that is not a number becomes 0, and a fraction is rounded up. */
export function wholeUpTo(value: number, max: number): number {
  return Number.isNaN(value) ? 0 : Math.min(max, Math.max(0, Math.ceil(value)));
}
