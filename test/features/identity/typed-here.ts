// Commands of a machine with the command line alone, run in this process: a process for each would cost half a second.
import { shell } from "../../admin/cli/shell.ts";
import type { Laptop, Typed } from "../../harness/laptop.ts";

export async function typedHere({ env }: Laptop, ...words: string[]): Promise<Typed> {
  const { code, out, err } = await shell({ environment: env, now_ms: Date.now }).typed(words);
  return { code, stdout: out, stderr: err };
}
