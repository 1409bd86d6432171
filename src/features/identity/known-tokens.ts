/**
 * IDENTITY TOKENS: callers that send a JWT of a trusted issuer in the place of a key (docs/design/keys.md, Identity
 * tokens). A token is verified once and cached until it expires. Each later request with the token costs as much as a
 * request with a key: a hash, and the look-up of the token's key. The rate of verifications of forged tokens has a
 * separate limit, so that they do not use up the limit of key look-ups.
 */
import { type HeaderSource, hashKey } from "../../core/auth/credential.ts";
import type { Identity } from "../../core/auth/identity.ts";
import type { IdentityTokens, KnownToken } from "../../core/auth/identity-tokens.ts";
import { type UnknownCredentialLimits, unknownCredentials } from "../../core/auth/unknown-credentials.ts";
import type { BucketSize } from "../../core/time/bucket.ts";

/** A valid token, and the key that it represents. */
export interface VerifiedToken {
  keyHash: Uint8Array;
  issuedAt_ms: number;
  lasts_ms: number;
}

export interface TokenVerifier {
  /** The identity settings in force; null: no issuer's tokens are accepted. */
  settings(): Identity | null;
  /**
   * Verifies a token. Throws Fault: 401 with the same message for every reason, 503 if the issuer cannot be reached.
   */
  verify(token: string): Promise<VerifiedToken>;
}

/** The length limit of identity tokens; a longer text is not treated as one. */
export const token_chars_max = 16 * 1024;
const bearerToken = /^bearer +(eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*)$/i;

interface RememberedToken extends KnownToken {
  /** The time at which the token expires, by the monotonic clock. */
  until_ms: number;
  /** The settings under which the token was verified. Under other settings, the token must be verified again. */
  settings: Identity | null;
}

const tokens_max = 10_000;
/**
 * The limit of verifications that find the token invalid. One verification takes up to 150 µs, so 300 a second take a
 * twentieth of a core.
 */
const fruitless: BucketSize = { burst: 300, per_second: 300 };
/** A reserve of verifications for addresses that have had no failures, in case other addresses use up `fruitless`. */
const unblemished: BucketSize = { burst: 100, per_second: 100 };

export function identityTokens(parts: {
  verifier: TokenVerifier;
  now_ms: () => number;
  limits: UnknownCredentialLimits;
}): IdentityTokens {
  const { verifier, now_ms } = parts;
  const guard = unknownCredentials({ ...parts.limits, fruitless_lookups: fruitless, unblemished }, now_ms);
  const known = new Map<string, RememberedToken>();
  const verifying = new Map<string, Promise<RememberedToken>>();

  async function verified(id: string, token: string, address: string): Promise<RememberedToken> {
    const place = await guard.enter(address);
    let isFound = false;
    try {
      const settings = verifier.settings();
      const { keyHash, issuedAt_ms, lasts_ms } = await verifier.verify(token);
      isFound = true;
      const hash = keyHash.toHex();
      const entry: RememberedToken = {
        keyHash,
        hash,
        issuedAt_ms,
        until_ms: now_ms() + lasts_ms,
        settings,
        seen: null,
        own: null,
      };
      known.delete(id);
      known.set(id, entry);
      if (known.size > tokens_max) known.delete(known.keys().next().value as string);
      return entry;
    } finally {
      place.leave(isFound);
    }
  }

  return {
    in: (headers) => (verifier.settings() === null ? null : identityTokenOf(headers)),
    known(token, address) {
      const id = hashKey(token).toHex();
      const entry = known.get(id);
      if (entry && now_ms() < entry.until_ms && entry.settings === verifier.settings()) {
        // A Map keeps the order of insertion, so its first entry is the least recently used token.
        known.delete(id);
        known.set(id, entry);
        return entry;
      }
      known.delete(id);
      const running = verifying.get(id);
      if (running) return running;
      // Only running verifications are shared. A refusal is not cached, because the address may be let in later.
      const begun = verified(id, token, address).finally(() => verifying.delete(id));
      verifying.set(id, begun);
      return begun;
    },
    failed: guard.failed,
  };
}

/**
 * The identity token in `Authorization`, if the header has one Bearer token in the form of a JWT; else null. The token
 * may still be invalid.
 */
function identityTokenOf(headers: HeaderSource): string | null {
  const authorization = headers.get("authorization");
  if (authorization === null || authorization.length > token_chars_max + "Bearer ".length) return null;
  return bearerToken.exec(authorization)?.[1] ?? null;
}
