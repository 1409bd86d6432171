/** What a request merely hints at, which a model that lacks it is not told (decisions.md, Capabilities). */
import type { Model } from "./model.ts";
import type { InferenceRequest } from "./request.ts";

/**
 * The request as this model is to see it. `thinking`, `reasoning` and `output_config.effort` of the adapters make no
 * need, because agents always send them; where they do (chat's `reasoning_effort`), the model has the capability.
 */
export function withoutLostHints(request: InferenceRequest, model: Pick<Model, "capabilities">): InferenceRequest {
  if (!request.reasoning || model.capabilities.has("reasoning")) return request;
  const { reasoning: _, ...rest } = request;
  return rest;
}
