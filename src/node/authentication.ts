/**
 * Wires the authentication of callers, and the check whether running requests may go on. Both learn of changes of keys
 * and organizations without delay.
 */
import { authenticator, authenticatorLimits } from "../core/auth/authenticate.ts";
import { standings } from "../core/auth/standing.ts";
import { unknownCredentialLimits } from "../core/auth/unknown-credentials.ts";
import { callerTokens } from "../features/identity/callers.ts";
import type { IdentityParts } from "../features/identity/identity.ts";
import { identityTokens } from "../features/identity/known-tokens.ts";
import { existingSecrets } from "../features/secrets/existing-secrets.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import { directory } from "../stores/postgres/directory.ts";
import { existingSecretsIn } from "../stores/postgres/existing-secrets.ts";
import { revocations } from "../stores/postgres/revocations.ts";
import { disposable, type Foundation } from "./foundation.ts";

interface AuthenticationDependencies {
  metrics: Metrics;
  /** The dependencies of sign-ins; null if nobody can sign in through an issuer. */
  people: IdentityParts | null;
  /** Returns how long to wait for the store now, given the usual wait, in milliseconds (store-patience.ts). */
  patience(usual_ms: number): number;
}

export type Authentication = Awaited<ReturnType<typeof startAuthentication>>;

export async function startAuthentication(
  { serving, settings, outage }: Foundation,
  { metrics, people, patience }: AuthenticationDependencies,
) {
  await using ending = new AsyncDisposableStack();
  const { database } = serving;
  const existing = existingSecrets({ store: existingSecretsIn(database), failed: outage("existing_keys_unread") });
  ending.defer(() => existing.stop());
  const failures_of_one_address_per_minute = settings.limits.failed_authentications_per_minute;
  const now_ms = () => performance.now();
  const tokenLimits = { ...unknownCredentialLimits, failures_of_one_address_per_minute };
  const tokens = people && identityTokens({ verifier: callerTokens(people), now_ms, limits: tokenLimits });
  const authentication = authenticator({
    ...(tokens && { tokens }),
    existing,
    directory: directory(database),
    now_ms,
    policy: () => serving.configuration.current().identity,
    limits: {
      failures_of_one_address_per_minute,
      lookup_ms: () => patience(authenticatorLimits.lookup_ms()),
    },
    failed: outage("last_use_unwritten"),
  });
  ending.defer(() => authentication.stop());
  const standing = standings({ authenticator: authentication, ends: settings.metering.end_revoked });
  ending.defer(() => standing.stop());
  const changed = (id: string, secretHash?: string) => {
    authentication.forget(id, secretHash);
    standing.changed(id);
  };
  const announced = { changed, missed: existing.reload, took: metrics.revocationPropagation };
  ending.defer(await revocations(database, announced));
  // The existing keys are read once announcements of changes are being received, so that no change is missed in
  // between.
  existing.reload();
  return disposable({ existing, authentication, standings: standing, changed }, ending);
}
