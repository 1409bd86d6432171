// The components of sign-ins (identity) on a database, for tests whose issuer is test/harness/issuer.ts.

import { identityOf } from "../../src/config/identity.ts";
import { sealing } from "../../src/config/sealed.ts";
import type { Identity } from "../../src/core/auth/identity.ts";
import { unknownCredentialLimits, unknownCredentials } from "../../src/core/auth/unknown-credentials.ts";
import type { IdentityParts } from "../../src/features/identity/identity.ts";
import { issuerClients } from "../../src/features/identity/issuer-clients.ts";
import { browserSessions } from "../../src/stores/postgres/browser-sessions.ts";
import type { Database } from "../../src/stores/postgres/database.ts";
import { deviceRequests } from "../../src/stores/postgres/device-requests.ts";
import { people } from "../../src/stores/postgres/people.ts";
import { signIns } from "../../src/stores/postgres/sign-ins.ts";
import { useCounts } from "../../src/stores/postgres/use-counts.ts";
import type { TestIssuer } from "./issuer.ts";

export const serviceUrl = "http://127.0.0.1:1";
export const consoleUrl = "http://127.0.0.1:2";

/** Settings with these issuers. A person whose `groups` claim has `staff` becomes a viewer of the service. */
export function settingsOf(issuers: readonly TestIssuer[], more: object = {}): Identity {
  return identityOf({
    service_url: serviceUrl,
    console_url: consoleUrl,
    issuers: issuers.map(({ issuer }) => ({ issuer, client_id: "sluice", client_secret: "secret" })),
    rules: issuers.map(({ issuer }) => ({ issuer, claim: "groups", has: "staff", role: "viewer" as const })),
    ...more,
  });
}

export function identityParts(db: Database, settings: () => Identity): IdentityParts {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  return {
    identity: settings,
    issuers: issuerClients({ now_ms: () => performance.now() }),
    people: people(db),
    sessions: browserSessions(db),
    signIns: signIns(db),
    devices: deviceRequests(db),
    uses: useCounts(db),
    sealing: sealing([new Uint8Array(32)], random),
    unknown: unknownCredentials(unknownCredentialLimits, () => performance.now()),
    random,
    newUuid: () => Bun.randomUUIDv7(),
    now_ms: Date.now,
  };
}
