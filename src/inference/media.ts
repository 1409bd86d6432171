/** What of an input is no text: its size in the wire's characters, and how many tokens it stands for, roughly. */
import type { InferenceRequest } from "./request.ts";

/** An image by what large ones cost most engines, the rest by its size in base64. */
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
