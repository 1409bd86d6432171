// Real identity providers before Sluice, each set up as its recipe in docs/identity.md says; people use a real browser.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { noBrowser } from "../../admin/console/chromium.ts";
import { CannotRun, type Edition, type Suite } from "../edition.ts";
import { dexProgram, type Installed, keycloakFolder } from "./programs.ts";

export const dexSuite = suiteOf("Dex", "DEX", dexProgram);
export const keycloakSuite = suiteOf("Keycloak", "KEYCLOAK", keycloakFolder);

function suiteOf(name: string, variable: string, installed: (edition: Edition) => Promise<Installed>): Suite {
  return async (edition) => {
    if (noBrowser !== null) throw new CannotRun(noBrowser);
    const { path, version } = await installed(edition);
    const checks = join(import.meta.dir, `${name.toLowerCase()}.checks.ts`);
    const { code, output } = await command([process.execPath, "test", checks], {
      limit_ms: 20 * 60_000,
      environment: { [variable]: path },
    });
    return { counts: countsOf(output, code), versions: `${name} ${version}` };
  };
}
