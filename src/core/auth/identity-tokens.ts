/**
 * Identity tokens, as the core sees them: JWTs that callers send in the place of a key. Who issued a token, and whether it
 * is valid, is a feature's affair (features/identity).
 */
import type { HeaderSource } from "./credential.ts";
import type { UnknownCredentials } from "./unknown-credentials.ts";
import type { Verdict } from "./verdict.ts";

/** A verified token, and the key that it represents. */
export interface KnownToken {
  keyHash: Uint8Array;
  issuedAt_ms: number;
  /** `keyHash` in hexadecimal digits. */
  hash: string;
  /** The last verdict on the token's key (`seen`), and the verdict on the token that follows from it (`own`). */
  seen: Verdict | null;
  own: Verdict | null;
}

export interface IdentityTokens {
  /** The identity token of a request; null if the request has none, or if no identity tokens are accepted. */
  in(headers: HeaderSource): string | null;
  /** The verified token with its key, either remembered or verified now. Throws Fault. */
  known(token: string, address: string): KnownToken | Promise<KnownToken>;
  failed: UnknownCredentials["failed"];
}
