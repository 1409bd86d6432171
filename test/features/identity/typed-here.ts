// Runs commands of a machine that has the command line alone, within this process: starting a process for each would
// take half a second.
import { shell } from "../../admin/cli/shell.ts";
import type { Laptop, Typed } from "../../harness/laptop.ts";

export async function typedHere({ env }: Laptop, ...words: string[]): Promise<Typed> {
  const { code, out, err } = await shell({ environment: env, now_ms: Date.now }).typed(words);
  return { code, stdout: out, stderr: err };
}
