/**
 * Refusals of features that an engine's protocol cannot express. Leaving such a feature out would change the answer, so
 * it is refused with its name.
 */
import { Fault } from "../inference/fault.ts";
import type { Capability, InferenceRequest, Protocol, Sampling } from "../inference/request.ts";

export function unsupportedByEngine(feature: string, param: string): Fault {
  const message = `The model's engine does not support ${feature}, which '${param}' asks for. Remove the field, or choose another model.`;
  return new Fault("unsupported_feature", message, { param });
}

/**
 * The refusal of penalties and of a logit bias, for which Messages and Responses have no fields; null if the request
 * has neither.
 */
export function refusedTuning({ frequencyPenalty, presencePenalty, logitBias }: Sampling): Fault | null {
  if (frequencyPenalty) return unsupportedByEngine("penalties", "frequency_penalty");
  if (presencePenalty) return unsupportedByEngine("penalties", "presence_penalty");
  return Object.keys(logitBias ?? {}).length > 0 ? unsupportedByEngine("logit bias", "logit_bias") : null;
}

/** The path of the field that needs a capability, as the caller wrote it. */
export function paramOf({ needs }: InferenceRequest, capability: Capability, otherwise = "messages"): string {
  return needs.find((need) => need.capability === capability)?.param ?? otherwise;
}

/** The refusal of the first feature that only engines of another protocol have; null if the request needs none. */
export function foreignNeed({ nativeNeeds }: InferenceRequest, protocol: Protocol): Fault | null {
  const foreign = nativeNeeds?.find((need) => need.protocol !== protocol);
  return foreign ? unsupportedByEngine(foreign.feature, foreign.param) : null;
}
