/**
 * Removes the hints of a request from which its model gains nothing, because it lacks the capability
 * (docs/design/service.md, Capabilities).
 */
import type { Model } from "./model.ts";
import type { InferenceRequest } from "./request.ts";

/**
 * The request without the hints that this model cannot use. `thinking`, `reasoning` and `output_config.effort` are
 * hints, because agents always send them; Chat's `reasoning_effort` is no hint but needs the capability. Parallel calls
 * are a permission, which does not matter to a model that cannot make calls.
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
