// One run of an agent as a process, and the files that it leaves behind.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Ended {
  /** Exit code. */
  code: number;
  out: string;
  err: string;
}

/** Runs the agent to its end. Throws at the deadline. */
export async function runToEnd(
  command: string[],
  { cwd, env, limit_ms }: { cwd: string; env: Record<string, string>; limit_ms: number },
): Promise<Ended> {
  const child = Bun.spawn(command, { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, limit_ms);
  try {
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (isLate) throw new Error(`It did not end within ${limit_ms} ms: ${out.slice(-2000)} ${err.slice(-2000)}`);
    return { code, out, err };
  } finally {
    clearTimeout(timer);
  }
}

/** The contents of the files of a folder, by name. */
export function filesOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(entries.map(({ name }) => [name, readFileSync(join(folder, name), "utf8")]));
}
