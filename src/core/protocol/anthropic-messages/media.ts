/**
 * Recognises images in base64 by their first bytes, and turns images and files of other protocols into the sources of
 * blocks; null if Messages cannot express one.
 */
import type { FilePart } from "../../inference/request.ts";
import type { JsonObject } from "../json.ts";

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

type ImageKind = "image/jpeg" | "image/png" | "image/gif" | "image/webp";

/** The media type of an image in base64, by its content; null if it is not an image. */
export function imageKindOf(data: string): ImageKind | null {
  if (!isBase64(data)) return null;
  const head = atob(data.slice(0, 16));
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("GIF87a") || head.startsWith("GIF89a")) return "image/gif";
  return head.startsWith("RIFF") && head.slice(8, 12) === "WEBP" ? "image/webp" : null;
}

export function isBase64(data: string): boolean {
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
}

/** The media type and the data of a data URL in base64; null for any other URL. */
export function base64Of(url: string): { mediaType: string; data: string } | null {
  const head = /^data:([a-z0-9.+-]+\/[a-z0-9.+-]+)?((?:;[a-z0-9=._-]+)*);base64,/i.exec(url.slice(0, 256));
  if (!head) return null;
  return { mediaType: (head[1] ?? "text/plain").toLowerCase(), data: url.slice(head[0].length) };
}
