/** Measures the images, files and audio of a request: their size on the wire, and an estimate of their tokens. */
import type { InferenceRequest } from "./request.ts";

/** The tokens of a large image at most engines. Files and audio are estimated from their size in base64. */
export const imageTokens = 1600;
const fileBytesPerToken = 16;
const audioBytesPerToken = 256;

export interface Media {
  bytes: number;
  tokens: number;
}

export function mediaOf(request: Pick<InferenceRequest, "turns">): Media {
  let bytes = 0;
  let tokens = 0;
  for (const turn of request.turns) {
    for (const part of turn.parts) {
      if (part.kind === "image") {
        bytes += part.url.length;
        tokens += imageTokens;
      } else if (part.kind === "file") {
        bytes += part.data.length;
        tokens += Math.ceil(part.data.length / fileBytesPerToken);
      } else if (part.kind === "audio") {
        bytes += part.data.length;
        tokens += Math.ceil(part.data.length / audioBytesPerToken);
      }
    }
  }
  return { bytes, tokens };
}
