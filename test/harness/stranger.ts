// Runs a script as another user. That user cannot enter this checkout if it is below a closed home directory, so the
// program and the script are copied into a folder of their own. Only root can do this.

import { chmodSync, copyFileSync, linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Returns the script's output on stdout. The script must import files of this checkout by absolute path. */
export async function saidAs(uid: number, script: string, env: Record<string, string> = {}): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-stranger-"));
  try {
    const entry = join(folder, "entry.ts");
    writeFileSync(entry, script);
    const { outputs } = await Bun.build({ entrypoints: [entry], target: "bun" });
    writeFileSync(join(folder, "script.js"), await outputs[0]!.text());
    chmodSync(folder, 0o755);
    const program = join(folder, "bun");
    linkOrCopy(process.execPath, program);
    const child = Bun.spawn([program, join(folder, "script.js")], {
      ...{ uid, gid: uid, env, cwd: folder, stdout: "pipe" },
      stderr: "inherit",
    });
    return await child.stdout.text();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}
