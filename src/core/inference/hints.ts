/** Hints of a request, which a model without the capability does not get (docs/design/service.md, Capabilities). */
import type { Model } from "./model.ts";
import type { InferenceRequest } from "./request.ts";

/**
 * The request without the hints that this model cannot use. `thinking`, `reasoning` and `output_config.effort` need no
 * capability, because agents always send them. Chat's `reasoning_effort` does, so the model has it then. Parallel calls are a
 * permission, which does not matter to a model that cannot make them.
 */
export function withoutLostHints(
  request: InferenceRequest,
  { capabilities }: Pick<Model, "capabilities">,
): InferenceRequest {
  const visible = { ...request };
  if (!capabilities.has("reasoning")) delete visible.reasoning;
  if (visible.parallelToolCalls === true && !capabilities.has("parallel_tools")) delete visible.parallelToolCalls;
  return visible;
}
