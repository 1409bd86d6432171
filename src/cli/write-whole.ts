/** Writes a file that only its owner may read. A reader finds the whole content or no file, whenever the process is cut off. */
import { renameSync, rmSync, writeFileSync } from "node:fs";

export function writeWhole(path: string, content: string): void {
  const part = `${path}.part`;
  rmSync(part, { force: true });
  writeFileSync(part, content, { mode: 0o600, flag: "wx" });
  renameSync(part, path);
}
