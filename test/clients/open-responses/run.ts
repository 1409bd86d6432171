// What the seventeen tests of Open Responses ask, in our words, against the service in front of the simulator. Every body
// and event is held to the schema of Open Responses, from the package `openresponses-types`, which is made from their
// OpenAPI file.

import { join } from "node:path";
import { type Edition, type Ran, ranChecks } from "../edition.ts";
import { type PythonPackages, pythonFor } from "../virtual-environment.ts";

const packages: PythonPackages = {
  requirements: join(import.meta.dir, "requirements.txt"),
  meant: ["openresponses-types"],
  folder: "open-responses-python",
};

export async function openResponsesSuite(edition: Edition): Promise<Ran> {
  const { python, versions } = await pythonFor(packages, edition);
  const how = { limit_ms: 5 * 60_000, environment: { OPEN_RESPONSES_PYTHON: python } };
  return { counts: await ranChecks(["open-responses/open-responses.checks.ts"], how), versions };
}
