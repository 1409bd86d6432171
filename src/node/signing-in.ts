/** Wires the sign-ins of people: their issuers, stores and secrets. Without a secret key, there are no sign-ins. */

import type { ServiceLimits } from "../config/configuration.ts";
import {
  type UnknownCredentialLimits,
  unknownCredentialLimits,
  unknownCredentials,
} from "../core/auth/unknown-credentials.ts";
import type { Sealing } from "../core/store/sealing.ts";
import { forgetting } from "../core/usage/forgetting.ts";
import type { IdentityParts } from "../features/identity/identity.ts";
import { issuerClients } from "../features/identity/issuer-clients.ts";
import { lifeOf } from "../features/identity/sessions.ts";
import { browserSessions } from "../stores/postgres/browser-sessions.ts";
import { deviceRequests } from "../stores/postgres/device-requests.ts";
import { people } from "../stores/postgres/people.ts";
import { signIns } from "../stores/postgres/sign-ins.ts";
import { useCounts } from "../stores/postgres/use-counts.ts";
import { disposable, type Foundation } from "./foundation.ts";
import { randomBytes, sealingOf } from "./sealing.ts";

/**
 * Bounds for unknown codes and tokens. A code or token occupies one of the slots for look-ups until the issuer has
 * answered, so there are many slots. The owner of a refresh token is only known after its look-up, so the limit of
 * look-ups that find nothing is so high that only many addresses together can reach it.
 */
const unknownLimits: UnknownCredentialLimits = {
  ...unknownCredentialLimits,
  unknown_lookups_max: 1000,
  fruitless_lookups: { burst: 2000, per_second: 500 },
};

export function unknownLimitsOf({ failed_authentications_per_minute }: ServiceLimits): UnknownCredentialLimits {
  return { ...unknownLimits, failures_of_one_address_per_minute: failed_authentications_per_minute };
}

export type SigningIn = ReturnType<typeof startSigningIn>;

export function startSigningIn({ serving, settings, outage }: Foundation) {
  const ending = new AsyncDisposableStack();
  const sealing = sealingOf(settings.server);
  const parts = sealing && partsOf(serving, settings, sealing);
  if (parts) {
    const rounds = forgetting({ forget: () => forget(parts), failed: outage("sign_ins_unforgotten") });
    ending.defer(() => rounds.stop());
  }
  return disposable({ parts }, ending);
}

function partsOf(
  { database, configuration }: Foundation["serving"],
  { limits }: Foundation["settings"],
  sealing: Sealing,
): IdentityParts {
  return {
    identity: () => configuration.current().identity,
    issuers: issuerClients({ now_ms: () => performance.now() }),
    people: people(database),
    sessions: browserSessions(database),
    signIns: signIns(database),
    devices: deviceRequests(database),
    uses: useCounts(database),
    sealing,
    unknown: unknownCredentials(unknownLimitsOf(limits), () => performance.now()),
    random: randomBytes,
    newUuid: () => Bun.randomUUIDv7(),
    now_ms: Date.now,
  };
}

/** Deletes expired sessions, tokens and people. Returns whether there may be more. */
async function forget({ identity, people, sessions, devices, uses, signIns }: IdentityParts): Promise<boolean> {
  const settings = identity();
  const gone = [await devices.forget(), await uses.forget(), await signIns.forget()];
  if (settings) gone.push(await sessions.forget(lifeOf(settings, "console")));
  const visitors = await people.deleteVisitors();
  return visitors > 0 || gone.some((count) => count >= 1000);
}
