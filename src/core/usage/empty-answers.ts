/** Whether an answer that has ended well is empty, and whether that is a failure of its engine. Pure. */
import { type InferenceEvent, isPartStart } from "../inference/event.ts";

type Batch = readonly InferenceEvent[];

/**
 * Whether the answer is empty. An answer that was ended by a limit, a filter or a stop text of the caller does not count
 * as empty. Not all engines say that a stop text ended it.
 */
export function isEmptyAnswer(batch: Batch, stop: readonly string[]): boolean {
  const last = batch.at(-1);
  const isEmpty = last?.type === "response-end" && last.reason === "stop" && !batch.some(isPartStart);
  return isEmpty && (stop.length === 0 || outputTokensIn(batch) === 0);
}

/**
 * The most tokens of an answer in which the model chose to say nothing. Engines count the token that ends the answer,
 * and up to two that are not shown.
 */
const silence_tokens_max = 8;

/**
 * Whether the engine reports that the model itself ended the empty answer right after its start, which is no failure of
 * the engine.
 */
export function isSilence(batch: Batch): boolean {
  const tokens = outputTokensIn(batch) ?? 0;
  return tokens > 0 && tokens <= silence_tokens_max;
}

function outputTokensIn(batch: Batch): number | undefined {
  return batch.findLast((event) => event.type === "usage")?.usage.outputTokens;
}
