/** What a request merely hints at, which a model that lacks it is not told (docs/design/service.md, Capabilities). */
import type { Model } from "./model.ts";
import type { InferenceRequest } from "./request.ts";

/**
 * The request as this model is to see it. `thinking`, `reasoning` and `output_config.effort` of the adapters make no
 * need, because agents always send them; where they do (chat's `reasoning_effort`), the model has the capability. That
 * several calls may be made at once is a permission, which a model that cannot make them has no use for.
 */
export function withoutLostHints(
  request: InferenceRequest,
  { capabilities }: Pick<Model, "capabilities">,
): InferenceRequest {
  const told = { ...request };
  if (!capabilities.has("reasoning")) delete told.reasoning;
  if (told.parallelToolCalls === true && !capabilities.has("parallel_tools")) delete told.parallelToolCalls;
  return told;
}
