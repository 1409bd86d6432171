/** The requests of a sign-in to a server: metadata (RFC 8414), codes (RFC 8628), tokens, revocation (RFC 7009). */

import { shellWord } from "../../management/shell-word.ts";
import { jsonOf, reached } from "../calling.ts";
import { pastProxies } from "../safe-url.ts";
import { oneLine } from "../terminal.ts";

export interface Endpoints {
  device: string;
  token: string;
  revoke: string;
}

export interface DeviceCodes {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete?: string;
  expires_in: number;
  interval?: number;
}

export interface TokenAnswer {
  access_token: string;
  expires_in: number;
  refresh_token?: string;
  email?: string;
}

/** An error response in the form of RFC 6749. Errors of any other form are thrown. */
export interface OauthRefusal {
  error: string;
  description: string;
}

const call_ms = 20_000;
/** The time limit of the check of a token: short, because an agent waits for the result. */
const check_ms = 2_000;
const userAgent = "sluice-cli";

/** The endpoints of the server's sign-in. Throws an Error if nobody can sign in at this server. */
export async function endpointsAt(url: string): Promise<Endpoints> {
  const response = await request(url, "/.well-known/oauth-authorization-server");
  const metadata = response.ok ? ((await jsonOf(response)) as Record<string, unknown> | null) : null;
  if (!metadata)
    throw new Error(
      `Nobody can sign in at ${url}: it is not set up for people (docs/identity.md), or is no Sluice. With a key: sluice login ${shellWord(url)} --key`,
    );
  const named = (name: string, standard: string) => onServer(url, metadata[name]) ?? url + standard;
  return {
    device: named("device_authorization_endpoint", "/oauth/device_authorization"),
    token: named("token_endpoint", "/oauth/token"),
    revoke: named("revocation_endpoint", "/oauth/revoke"),
  };
}

/**
 * The endpoint's URL; null if its origin differs from the typed URL's, which can happen behind a proxy. Then the caller
 * uses the standard path under the typed URL, because secrets are sent only to the origin that was typed.
 */
function onServer(url: string, endpoint: unknown): string | null {
  const parsed = typeof endpoint === "string" ? URL.parse(endpoint) : null;
  return parsed && parsed.origin === new URL(url).origin ? parsed.href : null;
}

export async function deviceCodes(url: string, { device }: Endpoints): Promise<DeviceCodes> {
  const answer = await posted<DeviceCodes>(url, device, { client_id: userAgent });
  if ("error" in answer) throw new Error(answer.description);
  const uri = URL.parse(answer.verification_uri);
  if (!uri || !/^https?:$/.test(uri.protocol) || typeof answer.device_code !== "string")
    throw new Error(`${url} answered with no address to open.`);
  return answer;
}

export function tokensFor(
  url: string,
  { token }: Endpoints,
  fields: Record<string, string>,
): Promise<TokenAnswer | OauthRefusal> {
  return posted<TokenAnswer>(url, token, fields);
}

export async function revokedAt(url: string, token: string): Promise<void> {
  const answer = await posted<object>(url, (await endpointsAt(url)).revoke, { token });
  if ("error" in answer) throw new Error(answer.description);
}

/**
 * Calls the server with the key. Throws an Error if the server does not know the key; a known key that may not list
 * models is accepted.
 */
export async function requireKnownKey(url: string, key: string): Promise<void> {
  const response = await request(url, "/v1/models", { headers: { authorization: `Bearer ${key}` } });
  if (response.ok || response.status === 403) return;
  throw new Error(refusalIn(url, response.status, await jsonOf(response)).description);
}

/** Whether the server no longer accepts this token; false if the server cannot be reached. */
export async function isRefused(url: string, token: string): Promise<boolean> {
  const response = await request(url, "/v1/models", { headers: { authorization: `Bearer ${token}` } }, check_ms).catch(
    () => null,
  );
  return response?.status === 401;
}

async function posted<Answer extends object>(
  url: string,
  endpoint: string,
  fields: Record<string, string>,
): Promise<Answer | OauthRefusal> {
  const response = await request(endpoint, "", { method: "POST", body: new URLSearchParams(fields) });
  const body = await jsonOf(response);
  if (response.ok && typeof body === "object" && body !== null) return body as Answer;
  const refusal = refusalIn(url, response.status, body);
  if (response.status >= 500 || refusal.error === "") throw new ServerAway(refusal.description);
  return refusal;
}

/** Thrown if the server is unavailable and has decided nothing: a later try may succeed. */
export class ServerAway extends Error {}

/** The error in a body, which has OAuth's form at the token endpoint and Sluice's own form elsewhere. */
function refusalIn(url: string, status: number, body: unknown): OauthRefusal {
  const { error, error_description } = (body ?? {}) as { error?: unknown; error_description?: unknown };
  const message = typeof error === "object" && error !== null && "message" in error ? error.message : error_description;
  return {
    error: typeof error === "string" ? error : "",
    description: typeof message === "string" ? oneLine(message) : `${url} answered ${status}.`,
  };
}

/** Sends a request. Redirects are not followed, since they would carry secrets to another place. */
export async function request(
  url: string,
  path: string,
  init: RequestInit = {},
  limit_ms = call_ms,
): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("user-agent", userAgent);
  try {
    return await reached({ url }, () =>
      fetch(url + path, {
        ...init,
        headers,
        redirect: "manual",
        signal: AbortSignal.timeout(limit_ms),
        ...pastProxies(url),
      }),
    );
  } catch (cause) {
    throw new ServerAway(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
