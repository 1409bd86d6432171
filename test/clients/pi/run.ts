// The real pi, from npm, against the service in front of a scripted engine. Its traffic stays on this machine.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { fileIn, npmPackages } from "../npm-packages.ts";

const wanted = { "@earendil-works/pi-coding-agent": "1.6.0" };

export async function piSuite(edition: Edition): Promise<Ran> {
  const packages = await npmPackages("pi", wanted, edition);
  const script = fileIn(packages, ["@earendil-works/pi-coding-agent/dist/bundle/cli.js"], "script of pi");
  const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "pi.checks.ts")], {
    limit_ms: 15 * 60_000,
    environment: { PI: script },
  });
  return { counts: countsOf(output, code), versions: packages.versions };
}
