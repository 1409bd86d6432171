/** Reads sluice.yaml, and remembers when the contents that were read had been changed. */
import { changedAt_ms, type ReadFile } from "../config/source.ts";
import type { FileRead } from "../features/workers/messages.ts";

/** Reads the file now. If it is replaced meanwhile, its contents may be newer than their date, and never older. */
export function fileRead(path: string, readFile: ReadFile): FileRead {
  try {
    return { changedAt_ms: changedAt_ms(path), bytes: readFile(path) };
  } catch (cause) {
    return { code: cause instanceof Error && "code" in cause ? String(cause.code) : "unknown" };
  }
}

/** `read`: returns the contents of sluice.yaml, from disk or as the supervisor sent them. */
export function configurationFile(path: string, readFile: ReadFile, read: () => FileRead) {
  let changed_ms: number | null = null;
  return {
    /** Reads sluice.yaml by `read`, and all other files from disk. */
    readFile(wanted: string): Uint8Array | null {
      if (wanted !== path) return readFile(wanted);
      const file = read();
      if (!("bytes" in file)) throw Object.assign(new Error("the file cannot be read"), { code: file.code });
      changed_ms = file.changedAt_ms;
      return file.bytes;
    },
    /**
     * The milliseconds since the contents that were read last had been changed; null if there was no file. A date in
     * the future counts as now.
     */
    age_ms: () => (changed_ms === null ? null : Math.max(0, Date.now() - changed_ms)),
  };
}
