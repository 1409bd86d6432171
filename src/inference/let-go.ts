/** What a request said, in memory, when nobody has to be told of it any more. */
import type { InferenceRequest } from "./request.ts";

/**
 * Empties the conversation and the tools in place: whoever took part in asking holds the same ones until the answer's end.
 * docs/design/service.md, Memory in flight.
 */
export function letGo({ turns, tools }: InferenceRequest): void {
  turns.length = 0;
  tools.length = 0;
}

/** Nobody asks without a conversation. */
export function isLetGo({ turns }: InferenceRequest): boolean {
  return turns.length === 0;
}
