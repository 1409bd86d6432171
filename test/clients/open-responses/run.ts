// Runs this project's version of the seventeen tests of Open Responses against the service in front of the simulator.
// Every body and event is checked against the schema in the package `openresponses-types`, which is generated from the
// OpenAPI file of Open Responses.

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
