/** Verifies the tokens of workloads (RFC 7523). An issuer has signed each token for this service. */

import type { Claims, Issuer } from "../../core/auth/identity.ts";
import { type IdentityParts, identityOf } from "./identity.ts";
import { IssuerRefused } from "./issuer-clients.ts";
import { token_chars_max } from "./known-tokens.ts";
import { issuerIn, verifiedClaims } from "./verified.ts";

export interface Assertion {
  issuer: Issuer;
  claims: Claims;
  /** The time at which the issuer made the token, by the issuer's clock. */
  issuedAt: Date;
  /** The time at which the token expires, by the node's clock. */
  ends_ms: number;
}

const assertion_ms_max = 24 * 3_600_000;
/** Claims that ID tokens have and access tokens don't. */
const idTokenClaims = ["nonce", "at_hash", "c_hash"];

/**
 * Verifies an access token of a trusted issuer, for an audience in its settings. ID tokens, which are meant for a
 * client, and logout tokens, which have the claim `events`, are not accepted. Throws NotConfigured, IssuerRefused,
 * IssuerAway.
 */
export async function verifiedAssertion(
  parts: Pick<IdentityParts, "identity" | "issuers" | "now_ms">,
  token: string,
): Promise<Assertion> {
  if (token.length > token_chars_max) throw new IssuerRefused("the assertion is too long");
  const issuer = identityOf(parts).issuers.find((one) => one.issuer === issuerIn(token) && one.audiences.length > 0);
  if (!issuer) throw new IssuerRefused("the assertion is of no issuer whose tokens are accepted");
  const { claims, typ } = await verifiedClaims(await parts.issuers.of(issuer), token, [...issuer.audiences], {
    maxTokenAge: assertion_ms_max / 1000,
  });
  if (claims.events !== undefined || /^(application\/)?logout\+jwt$/i.test(typ ?? ""))
    throw new IssuerRefused("a logout token is no assertion");
  if (idTokenClaims.some((name) => Object.hasOwn(claims, name)))
    throw new IssuerRefused("an ID token is for the client that signed somebody in, and no assertion");
  const ends_ms = (claims.exp as number) * 1000;
  const lasts_ms = ends_ms - parts.now_ms();
  if (lasts_ms > assertion_ms_max) throw new IssuerRefused("the assertion lasts longer than 24 hours");
  if (lasts_ms <= 0) throw new IssuerRefused("the assertion has expired");
  return { issuer, claims, issuedAt: new Date((claims.iat as number) * 1000), ends_ms };
}
