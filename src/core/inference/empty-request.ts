/** Frees the memory of a request that will not be sent again. */
import type { InferenceRequest } from "./request.ts";

/**
 * Empties the conversation and the tools in place, because several objects refer to them until the answer's end.
 * docs/design/service.md, Memory in flight.
 */
export function emptyRequest({ turns, tools, passed }: InferenceRequest): void {
  passed?.release();
  turns.length = 0;
  tools.length = 0;
}

/** Reports whether the request was emptied: a request always has a conversation. */
export function isEmptied({ turns }: InferenceRequest): boolean {
  return turns.length === 0;
}
