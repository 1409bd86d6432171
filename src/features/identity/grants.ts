/**
 * The OAuth grants at an issuer: the URL of the issuer's sign-in page, the exchange of a code for tokens, and the use
 * of a refresh token. The functions return verified claims, and the tokens to keep. They throw only IssuerAway or
 * IssuerRefused.
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

/** The values that the issuer's response must match. */
export interface Expected {
  state: string;
  nonce: string;
  /** The code verifier of PKCE. */
  verifier: string;
}

/** The issuer's tokens that are stored, encrypted, to ask the issuer later whether it still confirms the person. */
export interface KeptTokens {
  /** The claim `sub`, even if the settings identify the person by other claims. */
  subject: string;
  refreshToken: string;
}

export interface Vouched {
  claims: Claims;
  /** The ID of the session at the issuer (`sid`); null: the issuer sent none. */
  issuerSession: string | null;
  /** The tokens to keep. Null: the issuer gave no refresh token. */
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

/** Exchanges the code for tokens. `answer`: the URL, with the code, to which the issuer redirected the browser. */
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

/**
 * Asks the issuer, with the refresh token, whether it still confirms the person. `claims` is null if the issuer
 * confirms the person without sending claims.
 */
export async function refreshed(
  client: IssuerClient,
  { subject, refreshToken }: KeptTokens,
): Promise<{ claims: Claims | null; kept: KeptTokens }> {
  const tokens = await askingIssuer(client, () => refreshTokenGrant(client.configuration, refreshToken));
  // If the issuer sends no new refresh token, the old refresh token stays valid.
  const kept = { subject, refreshToken: tokens.refresh_token ?? refreshToken };
  const signed = tokens.id_token === undefined ? null : await verifiedIdToken(client, tokens.id_token);
  if (signed && signed.sub !== subject) throw new IssuerRefused("the answer is about somebody else");
  const info = await userInfo(client, tokens.access_token, subject);
  return { claims: signed || info ? together(info, signed) : null, kept };
}

async function vouched(client: IssuerClient, tokens: TokenEndpointResponse, claims: Claims): Promise<Vouched> {
  const { sid } = claims;
  const subject = claims.sub as string;
  const info = await userInfo(client, tokens.access_token, subject);
  return {
    claims: together(info, claims),
    issuerSession: typeof sid === "string" && sid !== "" && isPlain(sid) ? sid : null,
    kept: tokens.refresh_token ? { subject, refreshToken: tokens.refresh_token } : null,
  };
}

/**
 * The claims of the userinfo response and of the signed token, whose claims take precedence. `email_verified` applies
 * only to the address in the same response. Pure.
 */
export function together(info: Claims | null, signed: Claims | null): Claims {
  const isOther = info?.email !== undefined && signed?.email !== undefined && info.email !== signed.email;
  return { ...info, ...(isOther && { email_verified: false }), ...signed };
}

/**
 * The claims of the issuer's userinfo endpoint, where many issuers put e-mail and groups. Null: the issuer has no such
 * endpoint.
 */
async function userInfo(client: IssuerClient, accessToken: string, subject: string): Promise<Claims | null> {
  if (!client.metadata.userinfo_endpoint) return null;
  return askingIssuer(client, () => fetchUserInfo(client.configuration, accessToken, subject));
}

/**
 * The URL of the issuer's logout page; null if the issuer has none. The URL contains no token, so the page may ask the
 * user for confirmation.
 */
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

/** The text of the issuer's OAuth error, on one line; null: the error is of another kind. */
function saidBy(cause: unknown): string | null {
  if (!(cause instanceof ResponseBodyError || cause instanceof AuthorizationResponseError)) return null;
  const words = [cause.error, cause.error_description].filter((one) => one !== undefined).join(": ");
  return `it said "${words.replace(/\s+/g, " ").slice(0, said_chars_max)}"`;
}

/** The library's error codes for an invalid response of the issuer, which counts as a refusal and not as an outage. */
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

/** Whether the error is about this service's own client, or an outage, and so says nothing about the person. */
function isOurs(error: string): boolean {
  return ["invalid_client", "unauthorized_client", "temporarily_unavailable", "server_error"].includes(error);
}
