/**
 * Verifies ID tokens and logout tokens of an issuer. Each token must be issued for this service's client, and be of the
 * expected kind.
 */
import { decodeJwt, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import type { Claims } from "../../core/auth/identity.ts";
import { isPlain } from "../../core/inference/plain-text.ts";
import { isObject } from "../../core/protocol/json.ts";
import { clockTolerance_s, IssuerAway, type IssuerClient, IssuerRefused, reasonOf } from "./issuer-clients.ts";
import type { UseCounts } from "./store/use-counts.ts";

/**
 * The claims of an ID token. Throws IssuerRefused, or IssuerAway if the issuer's keys cannot be fetched. Before this
 * call, the OAuth library has compared issuer, nonce and the like.
 */
export async function verifiedIdToken(client: IssuerClient, token: string): Promise<Claims> {
  const claims = await verified(client, token, {});
  if (claims.events !== undefined) throw new IssuerRefused("a token with events is no ID token");
  return claims;
}

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";
const logoutAge_s = 120;

/** A logout of one session at the issuer, or of all sessions of a subject. */
export interface Logout {
  /** The claims that identify the person. */
  claims: Claims;
  issuerSession: string | null;
  /** Uses up the token. */
  used(): Promise<unknown>;
}

/**
 * Verifies a logout token (OpenID Connect Back-Channel Logout, 2.6), which is valid once, within two minutes. Throws
 * IssuerRefused or IssuerAway.
 */
export async function verifiedLogoutToken(client: IssuerClient, token: string, uses: UseCounts): Promise<Logout> {
  const claims = await verified(client, token, { maxTokenAge: logoutAge_s });
  const { events, sid, sub, jti, nonce } = claims as JWTPayload & { events?: unknown; sid?: unknown; nonce?: unknown };
  const event = isObject(events) ? events[logoutEvent] : undefined;
  if (!isObject(event)) throw new IssuerRefused("the token is no logout token: it has no such event");
  if (nonce !== undefined) throw new IssuerRefused("a logout token has no nonce");
  if (typeof jti !== "string" || jti === "") throw new IssuerRefused("the logout token has no jti");
  if (typeof sid === "string" && !isPlain(sid)) throw new IssuerRefused("the sid of the logout token is no plain text");
  if (typeof sid !== "string" && typeof sub !== "string") throw new IssuerRefused("the token has neither sid nor sub");
  const lasts_ms = (logoutAge_s + 2 * clockTolerance_s) * 1000;
  const use = ["logout token", `${client.issuer.issuer}\n${jti}`] as const;
  if ((await uses.counted(...use)) > 0) throw new IssuerRefused("the logout token was used before");
  return { claims, issuerSession: typeof sid === "string" ? sid : null, used: () => uses.count(...use, lasts_ms) };
}

/**
 * The issuer that an unverified token names, by which the keys to verify the token are chosen. Nothing else in an
 * unverified token is used.
 */
export function issuerIn(token: string): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch {
    return "";
  }
}

async function verified(client: IssuerClient, token: string, checks: JWTVerifyOptions): Promise<Claims> {
  const { clientId } = client.issuer;
  if (clientId === null) throw new IssuerRefused("nobody signs in by this issuer");
  return (await verifiedClaims(client, token, [clientId], checks)).claims;
}

/**
 * Verifies that this issuer has signed the token for one of these audiences, and returns the claims. Throws
 * IssuerRefused, IssuerAway.
 */
export async function verifiedClaims(
  client: IssuerClient,
  token: string,
  audience: string[],
  checks: JWTVerifyOptions = {},
): Promise<{ claims: Claims; typ: string | undefined }> {
  const { issuer, algorithms } = client.issuer;
  try {
    const { payload, protectedHeader } = await jwtVerify(token, client.keys, {
      issuer,
      audience,
      algorithms: [...algorithms],
      clockTolerance: clockTolerance_s,
      requiredClaims: ["iat", "exp"],
      ...checks,
    });
    return { claims: payload, typ: protectedHeader.typ };
  } catch (cause) {
    throw cause instanceof errors.JOSEError && !isOutage(cause)
      ? new IssuerRefused(`the token of ${issuer} does not hold: ${cause.message}`, { cause })
      : new IssuerAway(`the keys of ${issuer} cannot be had: ${reasonOf(cause)}`, { cause });
  }
}

/**
 * Whether the error means that the keys could not be fetched. The library throws its generic error if the response is
 * not a key set.
 */
function isOutage(error: errors.JOSEError): boolean {
  return (
    error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC"
  );
}
