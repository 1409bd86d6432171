/**
 * Writes a file that only its owner may read, unless `mode` says otherwise. Even if the process is killed, the file has
 * its whole new content or is left as it was.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";

export function writeWhole(path: string, content: string, mode = 0o600): void {
  const part = `${path}.part`;
  rmSync(part, { force: true });
  writeFileSync(part, content, { mode, flag: "wx" });
  renameSync(part, path);
}
