// Tests real identity providers as Sluice's issuers, each set up as its recipe in docs/identity.md says, with a real
// browser.

import { noBrowser } from "../../admin/console/chromium.ts";
import { CannotRun, type Edition, ranChecks, type Suite } from "../edition.ts";
import { dexProgram, type Installed, keycloakFolder } from "./programs.ts";

export const dexSuite = suiteOf("Dex", "DEX", dexProgram);
export const keycloakSuite = suiteOf("Keycloak", "KEYCLOAK", keycloakFolder);

function suiteOf(name: string, variable: string, installed: (edition: Edition) => Promise<Installed>): Suite {
  return async (edition) => {
    if (noBrowser !== null) throw new CannotRun(noBrowser);
    const { path, version } = await installed(edition);
    const how = { limit_ms: 20 * 60_000, environment: { [variable]: path } };
    const counts = await ranChecks([`issuers/${name.toLowerCase()}.checks.ts`], how);
    return { counts, versions: `${name} ${version}` };
  };
}
