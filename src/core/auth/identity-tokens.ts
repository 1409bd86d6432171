/**
 * IDENTITY TOKENS: callers that send a JWT of a trusted issuer in the place of a key (docs/design/keys.md, Identity
 * tokens). A token is verified once and remembered until it ends. After that, each request with it costs as much as a
 * request with a key: a hash, and the look-up of the token's key. Verifications of forged tokens have a limit of their
 * own, so that they do not use up the look-ups of other callers.
 */
import type { BucketSize } from "../time/bucket.ts";
import { type HeaderSource, hashKey, identityTokenOf } from "./credential.ts";
import type { Identity } from "./identity.ts";
import { type UnknownCredentialLimits, unknownCredentials } from "./unknown-credentials.ts";
import type { Verdict } from "./verdict.ts";

/** A valid token, and the key that it represents. */
export interface VerifiedToken {
  keyHash: Uint8Array;
  issuedAt_ms: number;
  /** How long the token is still valid. */
  lasts_ms: number;
}

export interface TokenVerifier {
  /** The identity settings in force; null: no issuer's tokens are accepted. */
  settings(): Identity | null;
  /** Verifies a token. Throws Fault: 401 with the same message for every reason, 503 if the issuer cannot be asked. */
  verify(token: string): Promise<VerifiedToken>;
}

export interface KnownToken extends Pick<VerifiedToken, "keyHash" | "issuedAt_ms"> {
  /** The token's SHA-256 in hexadecimal digits. */
  hash: string;
  /** When the token ends, by the monotonic clock. */
  until_ms: number;
  /** The settings under which the token was verified: under other settings, the verdict may differ. */
  settings: Identity | null;
  /** The last verdict on the token's key (`seen`), and the verdict on the token that follows from it (`own`). */
  seen: Verdict | null;
  own: Verdict | null;
}

export interface IdentityTokens {
  /** The identity token of a request; null if the request has none, or if no identity tokens are accepted. */
  in(headers: HeaderSource): string | null;
  /** The verified token with its key, either remembered or verified now. Throws Fault. */
  known(token: string, address: string): KnownToken | Promise<KnownToken>;
  /**
   * Counts a refused token, and returns the refusal to send: a 429 once the client's address has had too many refusals.
   */
  failed: ReturnType<typeof unknownCredentials>["failed"];
}

export const tokens_max = 10_000;
/**
 * The verifications a second that may find an invalid token. One verification takes up to 150 µs, so all of them take a
 * twentieth of a core.
 */
const fruitless: BucketSize = { burst: 300, per_second: 300 };
/** Further verifications a second, for addresses without failures only, in case other addresses use up `fruitless`. */
const unblemished: BucketSize = { burst: 100, per_second: 100 };

export function identityTokens(parts: {
  verifier: TokenVerifier;
  now_ms: () => number;
  limits: UnknownCredentialLimits;
  entries_max?: number;
}): IdentityTokens {
  const { verifier, now_ms, entries_max = tokens_max } = parts;
  const guard = unknownCredentials({ ...parts.limits, fruitless_lookups: fruitless, unblemished }, now_ms);
  const known = new Map<string, KnownToken>();
  const verifying = new Map<string, Promise<KnownToken>>();

  async function verified(id: string, token: string, address: string): Promise<KnownToken> {
    const place = await guard.enter(address);
    let isFound = false;
    try {
      const settings = verifier.settings();
      const { keyHash, issuedAt_ms, lasts_ms } = await verifier.verify(token);
      isFound = true;
      const hash = keyHash.toHex();
      const entry = { keyHash, hash, issuedAt_ms, until_ms: now_ms() + lasts_ms, settings, seen: null, own: null };
      known.delete(id);
      known.set(id, entry);
      if (known.size > entries_max) known.delete(known.keys().next().value as string);
      return entry;
    } finally {
      place.leave(isFound);
      verifying.delete(id);
    }
  }

  return {
    in: (headers) => (verifier.settings() === null ? null : identityTokenOf(headers)),
    known(token, address) {
      const id = hashKey(token).toHex();
      const entry = known.get(id);
      if (entry && now_ms() < entry.until_ms && entry.settings === verifier.settings()) {
        // A Map keeps the order of insertion, so the first token is the one unused for longest.
        known.delete(id);
        known.set(id, entry);
        return entry;
      }
      known.delete(id);
      const running = verifying.get(id) ?? verified(id, token, address);
      verifying.set(id, running);
      return running;
    },
    failed: guard.failed,
  };
}
