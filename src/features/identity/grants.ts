/**
 * The questions to an issuer: the address of its page, the tokens for a code, and again by its refresh token. Each answer is
 * claims that were verified, and what is kept of it. Throws IssuerAway or IssuerRefused, and nothing else.
 */
import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  ClientError,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  ResponseBodyError,
  refreshTokenGrant,
  type TokenEndpointResponse,
} from "openid-client";
import type { Claims } from "../../core/auth/identity.ts";
import { isPlain } from "../../core/inference/plain-text.ts";
import { IssuerAway, type IssuerClient, IssuerRefused, reasonOf } from "./issuer-clients.ts";
import { verifiedIdToken } from "./verified.ts";

/** The values that must come back with the answer. */
export interface Expected {
  state: string;
  nonce: string;
  /** The code verifier of PKCE. */
  verifier: string;
}

/** The tokens that are kept, sealed, to ask the issuer again. */
export interface KeptTokens {
  /** `sub`, whatever claims say who somebody is. */
  subject: string;
  refreshToken: string;
}

export interface Vouched {
  claims: Claims;
  /** The session at the issuer. */
  issuerSession: string | null;
  /** Null: the issuer gave none. */
  kept: KeptTokens | null;
}

export async function authorizationUrl(
  { configuration, issuer }: IssuerClient,
  redirectUri: string,
  { state, nonce, verifier }: Expected,
): Promise<URL> {
  return buildAuthorizationUrl(configuration, {
    ...issuer.parameters,
    redirect_uri: redirectUri,
    scope: issuer.scopes.join(" "),
    state,
    nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
}

/** `answer`: the address to which the issuer sent the browser. */
export async function exchanged(client: IssuerClient, answer: URL, expected: Expected): Promise<Vouched> {
  const tokens = await askingIssuer(client, () =>
    authorizationCodeGrant(client.configuration, answer, {
      expectedState: expected.state,
      expectedNonce: expected.nonce,
      pkceCodeVerifier: expected.verifier,
      idTokenExpected: true,
    }),
  );
  const claims = await verifiedIdToken(client, tokens.id_token!);
  return vouched(client, tokens, claims);
}

/** Null claims: the issuer says yes, and no more. */
export async function refreshed(
  client: IssuerClient,
  { subject, refreshToken }: KeptTokens,
): Promise<{ claims: Claims | null; kept: KeptTokens }> {
  const tokens = await askingIssuer(client, () => refreshTokenGrant(client.configuration, refreshToken));
  // Without a new one, the old one goes on.
  const kept = { subject, refreshToken: tokens.refresh_token ?? refreshToken };
  const signed = tokens.id_token === undefined ? null : await verifiedIdToken(client, tokens.id_token);
  if (signed && signed.sub !== subject) throw new IssuerRefused("the answer is about somebody else");
  const info = await userInfo(client, tokens.access_token, subject);
  return { claims: signed || info ? { ...info, ...signed } : null, kept };
}

async function vouched(client: IssuerClient, tokens: TokenEndpointResponse, claims: Claims): Promise<Vouched> {
  const { sid } = claims;
  const subject = claims.sub as string;
  const info = await userInfo(client, tokens.access_token, subject);
  return {
    // The signed claims count first.
    claims: { ...info, ...claims },
    issuerSession: typeof sid === "string" && sid !== "" && isPlain(sid) ? sid : null,
    kept: tokens.refresh_token ? { subject, refreshToken: tokens.refresh_token } : null,
  };
}

/** Many issuers put e-mail and groups there alone. Null: it has no such place. */
async function userInfo(client: IssuerClient, accessToken: string, subject: string): Promise<Claims | null> {
  if (!client.metadata.userinfo_endpoint) return null;
  return askingIssuer(client, () => fetchUserInfo(client.configuration, accessToken, subject));
}

/** The issuer's logout page; null if it has none. The address holds no token, so the page may ask for confirmation. */
export function endSessionUrl({ configuration, metadata }: IssuerClient, returnTo: string): URL | null {
  if (!metadata.end_session_endpoint) return null;
  return buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo });
}

async function askingIssuer<Answer>({ issuer }: IssuerClient, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (cause) {
    const message = `${issuer.issuer}: ${saidBy(cause) ?? reasonOf(cause)}`;
    throw isRefusal(cause) ? new IssuerRefused(message, { cause }) : new IssuerAway(message, { cause });
  }
}

const said_chars_max = 300;

/** An error of OAuth in the issuer's own words, on one line; null: it is none. */
function saidBy(cause: unknown): string | null {
  if (!(cause instanceof ResponseBodyError || cause instanceof AuthorizationResponseError)) return null;
  const words = [cause.error, cause.error_description].filter((one) => one !== undefined).join(": ");
  return `it said "${words.replace(/\s+/g, " ").slice(0, said_chars_max)}"`;
}

/** Answers that mean something else when they come again: not an outage. */
const comparisons = [
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_PARSE_ERROR",
  "OAUTH_UNSUPPORTED_OPERATION",
];

function isRefusal(cause: unknown): boolean {
  if (cause instanceof AuthorizationResponseError) return true;
  if (cause instanceof ResponseBodyError) return cause.status < 500 && cause.status !== 429 && !isOurs(cause.error);
  return cause instanceof ClientError && comparisons.includes(cause.code ?? "");
}

/** A wrong secret of our client says nothing of the person. */
function isOurs(error: string): boolean {
  return ["invalid_client", "unauthorized_client", "temporarily_unavailable", "server_error"].includes(error);
}
