/**
 * What a protocol has no words for. Left out, it would change the answer; so it is refused by name, in the same words
 * wherever it is found.
 */
import { Fault } from "../inference/fault.ts";
import type { InferenceRequest, Protocol } from "../inference/request.ts";

export function unsupportedByEngine(feature: string, param: string): Fault {
  const message = `The model's engine does not support ${feature}, which '${param}' asks for. Remove the field, or choose another model.`;
  return new Fault("unsupported_feature", message, { param });
}

/** The first thing that only engines of another protocol can do. */
export function foreignNeed({ nativeNeeds }: InferenceRequest, protocol: Protocol): Fault | null {
  if (nativeNeeds) {
    for (const need of nativeNeeds)
      if (need.protocol !== protocol) return unsupportedByEngine(need.feature, need.param);
  }
  return null;
}
