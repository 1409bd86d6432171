// transformers' own server behind the service, driven by the openai SDK: an engine that nobody here wrote.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { engineParts } from "./server.ts";

export async function transformersCounts(): Promise<Counts> {
  const { python, models } = await engineParts();
  const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "transformers.checks.ts")], {
    limit_ms: 10 * 60_000,
    environment: { TRANSFORMERS_PYTHON: python, TRANSFORMERS_MODELS: models },
  });
  return countsOf(output, code);
}
