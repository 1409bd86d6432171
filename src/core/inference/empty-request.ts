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

/** Whether the request was emptied. One that was not always has turns. */
export function isEmptied({ turns }: InferenceRequest): boolean {
  return turns.length === 0;
}
