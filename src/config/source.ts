/** Reads files from disk, for all files of src/config. */
import { closeSync, openSync, readSync, statSync } from "node:fs";

/** The largest size of sluice.yaml, and of every other file that is read here. */
export const file_bytes_max = 1024 * 1024;

/** Returns the bytes of a file; null if it does not exist. Throws an error with a `code` if it cannot be read. */
export type ReadFile = (path: string) => Uint8Array | null;

/**
 * The bytes of a file; null if it does not exist. A file that is too large is read to one byte beyond the limit, by
 * which the caller recognizes it.
 */
export function readFileBounded(path: string, bytes_max = file_bytes_max): Uint8Array | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")) return null;
    throw cause;
  }
  try {
    const bytes = new Uint8Array(bytes_max + 1);
    let length = 0;
    while (length < bytes.byteLength) {
      const read = readSync(descriptor, bytes, length, bytes.byteLength - length, null);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The bytes of a file as text; null if they are not UTF-8 or contain NUL. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** When a file was changed, in milliseconds since the epoch; null if it does not exist. */
export function changedAt_ms(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.mtime.getTime() ?? null;
}

export function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
  if (code === "EISDIR") return "it is a folder";
  return code === "EACCES" || code === "EPERM" ? "this user cannot read it" : code;
}
