// What the seventeen tests of Open Responses ask, in our words, against the service in front of the simulator. The schema to
// which every body and event is held is theirs, by the package `openresponses-types`, which is made from their OpenAPI file.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { type PythonPackages, pythonFor } from "../virtual-environment.ts";

const packages: PythonPackages = {
  requirements: join(import.meta.dir, "requirements.txt"),
  meant: ["openresponses-types"],
  folder: "open-responses-python",
};

export async function openResponsesSuite(edition: Edition): Promise<Ran> {
  const { python, versions } = await pythonFor(packages, edition);
  const { code, output } = await command(
    [process.execPath, "test", join(import.meta.dir, "open-responses.checks.ts")],
    { limit_ms: 5 * 60_000, environment: { OPEN_RESPONSES_PYTHON: python } },
  );
  return { counts: countsOf(output, code), versions };
}
