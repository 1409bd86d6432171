/** What callers of the other protocols may ask for and Messages has no words for, by the names that they know it by. */
import type { Fault } from "../../inference/fault.ts";
import type { Capability, InferenceRequest, InputPart, Turn } from "../../inference/request.ts";
import { foreignNeed, unsupportedByEngine } from "../unsupported.ts";
import { documentSource, imageSource } from "./media.ts";

export function refusalOf(request: InferenceRequest): Fault | null {
  const { sampling, logprobs, format, tools, needs } = request;
  const param = (capability: Capability, otherwise = "messages") =>
    needs.find((need) => need.capability === capability)?.param ?? otherwise;
  if (sampling.frequencyPenalty) return unsupportedByEngine("penalties", "frequency_penalty");
  if (sampling.presencePenalty) return unsupportedByEngine("penalties", "presence_penalty");
  if (Object.keys(sampling.logitBias ?? {}).length > 0) return unsupportedByEngine("logit bias", "logit_bias");
  if ((sampling.temperature ?? 0) > 1) return unsupportedByEngine("a temperature above 1", "temperature");
  if (logprobs) return unsupportedByEngine("log probabilities", param("logprobs", "logprobs"));
  if (format?.kind === "json_object")
    return unsupportedByEngine("JSON without a schema", param("structured_output", "response_format"));
  if (tools.some((tool) => tool.kind === "custom")) return unsupportedByEngine("custom tools", "tools");
  const media = needs.some(({ capability }) => mediaCapabilities.has(capability)) ? firstMedium(request.turns) : null;
  return media
    ? unsupportedByEngine(media.feature, param(media.capability))
    : foreignNeed(request, "anthropic-messages");
}

const mediaCapabilities: ReadonlySet<Capability> = new Set(["vision", "files", "audio_input"] as const);

function firstMedium(turns: readonly Turn[]): { feature: string; capability: Capability } | null {
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "tool") continue;
    for (const part of turn.parts) {
      const feature = strangeMedium(part);
      if (feature) return feature;
    }
  }
  return null;
}

function strangeMedium(part: InputPart): { feature: string; capability: Capability } | null {
  if (part.kind === "audio") return { feature: "audio input", capability: "audio_input" };
  if (part.kind === "image" && !imageSource(part.url))
    return { feature: "a data: URL that is not an image in base64", capability: "vision" };
  if (part.kind === "file" && !documentSource(part))
    return { feature: "a file that is neither a PDF nor plain text", capability: "files" };
  return null;
}
