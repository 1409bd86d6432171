/**
 * Fits a request of another protocol to Anthropic's API, which has rules between the fields of a request that other services
 * do not have. Clients of the API itself know the rules.
 */
import type { InferenceRequest } from "../../inference/request.ts";
import { withInstructionsAtHead } from "../../inference/turns.ts";

export function fitted(request: InferenceRequest): InferenceRequest {
  // Most models refuse instructions after the head. Others take them before the model's turn alone.
  return { ...request, turns: withInstructionsAtHead(request.turns) };
}
