/**
 * Refuses features of the other protocols that Messages cannot express. The refusal names each by its field in the
 * caller's protocol.
 */
import type { Fault } from "../../inference/fault.ts";
import type { Capability, InferenceRequest, InputPart, Turn } from "../../inference/request.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { beyondBounds, foreignNeed, paramOf, refusedTuning, unsupportedByEngine } from "../engine-options.ts";
import { documentSource, imageSource } from "./media.ts";

export function unsupportedByMessages(request: InferenceRequest, dialect: Dialect = dialects.generic): Fault | null {
  const { sampling, logprobs, format, needs } = request;
  const tuning = refusedTuning(sampling);
  if (tuning) return tuning;
  if ((sampling.temperature ?? 0) > 1) return unsupportedByEngine("a temperature above 1", "temperature");
  if (logprobs) return unsupportedByEngine("log probabilities", paramOf(request, "logprobs", "logprobs"));
  if (format?.kind === "json_object")
    return unsupportedByEngine("JSON without a schema", paramOf(request, "structured_output", "response_format"));
  const media = needs.some(isMedium) ? firstMedium(request.turns) : null;
  return media
    ? unsupportedByEngine(media.feature, paramOf(request, media.capability))
    : (foreignNeed(request, "anthropic-messages") ?? beyondBounds(request, dialect));
}

const mediaCapabilities: ReadonlySet<Capability> = new Set(["vision", "files", "audio_input"] as const);
const isMedium = ({ capability }: InferenceRequest["needs"][number]) => mediaCapabilities.has(capability);

function firstMedium(turns: readonly Turn[]): { feature: string; capability: Capability } | null {
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "tool") continue;
    for (const part of turn.parts) {
      const found = refusedMedium(part);
      if (found) return found;
    }
  }
  return null;
}

function refusedMedium(part: InputPart): { feature: string; capability: Capability } | null {
  if (part.kind === "audio") return { feature: "audio input", capability: "audio_input" };
  if (part.kind === "image" && !imageSource(part.url))
    return { feature: "a data: URL that is not an image in base64", capability: "vision" };
  if (part.kind === "file" && !documentSource(part))
    return { feature: "a file that is neither a PDF nor plain text", capability: "files" };
  return null;
}
