/** Recognises images in base64 by their first bytes. The rest is only checked for its alphabet. */

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
