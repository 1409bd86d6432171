// Runs the checks of llama.cpp's own server behind the service, driven by the openai SDK: an engine that this project did
// not write.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { engineParts } from "./llama.ts";

export async function engineCounts(): Promise<Counts> {
  const { server, model } = await engineParts();
  const checks = join(import.meta.dir, "llama.checks.ts");
  // If a check takes too long, everything that it started is ended, the engine too. So give it time on a busy machine.
  const { code, output } = await command([process.execPath, "test", "--timeout=60000", checks], {
    limit_ms: 10 * 60_000,
    environment: { LLAMA_SERVER: server, LLAMA_MODEL: model },
  });
  return countsOf(output, code);
}
