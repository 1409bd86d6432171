/** Turns images and files of other protocols into the sources of blocks; null if Messages cannot express one. */
import type { FilePart } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";
import { base64Of, imageKindOf, isBase64 } from "./images.ts";

export function imageSource(url: string): JsonObject | null {
  if (!/^data:/i.test(url)) return { type: "url", url };
  const held = base64Of(url);
  if (!held?.mediaType.startsWith("image/")) return null;
  // Engines of Messages compare the media type with the content; engines of other protocols do not.
  return { type: "base64", media_type: imageKindOf(held.data.slice(0, 16)) ?? held.mediaType, data: held.data };
}

/**
 * The source of a document block, from a PDF or plain text. A PDF without its media type is recognised by its first
 * bytes.
 */
export function documentSource(part: Pick<FilePart, "data" | "mediaType">): JsonObject | null {
  const held = base64Of(part.data) ?? { mediaType: part.mediaType ?? "", data: part.data };
  if (held.mediaType === "application/pdf" || held.data.startsWith("JVBERi"))
    return { type: "base64", media_type: "application/pdf", data: held.data };
  if (held.mediaType !== "text/plain" || !isBase64(held.data)) return null;
  const bytes = Uint8Array.from(atob(held.data), (letter) => letter.charCodeAt(0));
  return { type: "text", media_type: "text/plain", data: new TextDecoder().decode(bytes) };
}
