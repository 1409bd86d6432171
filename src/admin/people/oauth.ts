/**
 * The endpoints for devices and workloads: metadata (RFC 8414), a code for a device (RFC 8628), tokens (RFC 6749,
 * 7523), revocation (RFC 7009). Clients have no secrets: a code, a refresh token or an assertion authenticates each
 * request.
 */
import type { Call } from "../../core/http/call.ts";
import { cleaned } from "../../core/http/call-notes.ts";
import { retryAfter } from "../../core/http/fault-answer.ts";
import { json } from "../../core/http/json.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { notThere, unlisted } from "../../core/operations/unlisted.ts";
import { scopes } from "../../core/store/directory.ts";
import { requestDevice } from "../../features/identity/devices.ts";
import type { IdentityParts } from "../../features/identity/identity.ts";
import { identityOf, NotConfigured } from "../../features/identity/identity.ts";
import { IssuerAway } from "../../features/identity/issuer-clients.ts";
import {
  byAssertion,
  byDeviceCode,
  byRefreshToken,
  revoke,
  TokenRefused,
  type Tokens,
} from "../../features/identity/tokens.ts";
import { bounded } from "./bounded.ts";
import { type Fields, readFields } from "./form.ts";
import { placeOf } from "./place.ts";

const paths = {
  metadata: "/.well-known/oauth-authorization-server",
  device: "/oauth/device_authorization",
  token: "/oauth/token",
  /** The second path of the token endpoint, which Anthropic's SDKs use. */
  otherToken: "/v1/oauth/token",
  revoke: "/oauth/revoke",
};

type Grant = (parts: IdentityParts, fields: Fields) => Promise<Tokens>;

/** The handlers of grants by `grant_type`. The keys are plain strings because a client may send any text. */
const grants: ReadonlyMap<string, Grant> = new Map<string, Grant>([
  [
    "urn:ietf:params:oauth:grant-type:device_code",
    (parts, fields) => byDeviceCode(parts, required(fields, "device_code")),
  ],
  ["refresh_token", (parts, fields) => byRefreshToken(parts, required(fields, "refresh_token"))],
  ["urn:ietf:params:oauth:grant-type:jwt-bearer", (parts, fields) => byAssertion(parts, required(fields, "assertion"))],
]);

export function oauthOperations(parts: IdentityParts): Operation[] {
  const posted = (id: string, path: string, answer: (call: Call, fields: Fields) => Promise<Response>) =>
    served(id, "post", path, async (call) => answer(call, await readFields(call)));
  const token = (call: Call, fields: Fields) => tokens(parts, call, fields);
  return [
    served("getAuthorizationServer", "get", paths.metadata, async () => json(200, metadataOf(parts))),
    posted("authorizeDevice", paths.device, (call, fields) => deviceAuthorization(parts, call, fields)),
    posted("createToken", paths.token, token),
    posted("createWorkloadToken", paths.otherToken, token),
    posted("revokeToken", paths.revoke, async (call, fields) => {
      await bounded(parts, call, () => revoke(parts, required(fields, "token")));
      return json(200, {});
    }),
  ];
}

function served(id: string, method: "get" | "post", path: string, answer: (call: Call) => Promise<Response>) {
  return unlisted({
    id,
    method,
    path,
    handle: (dependencies, call) => answer(call).catch((thrown) => refusal(dependencies, call, thrown)),
  });
}

function metadataOf(parts: IdentityParts) {
  const { origin } = placeOf(parts, "device");
  return {
    issuer: origin,
    device_authorization_endpoint: origin + paths.device,
    token_endpoint: origin + paths.token,
    revocation_endpoint: origin + paths.revoke,
    grant_types_supported: [...grants.keys()],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    response_types_supported: [],
    scopes_supported: scopes,
  };
}

async function deviceAuthorization(parts: IdentityParts, call: Call, fields: Fields): Promise<Response> {
  const { origin } = placeOf(parts, "device");
  const device = { agent: agentOf(call, fields), address: call.client };
  const begun = await bounded(parts, call, async () => {
    const requested = await requestDevice(parts, device);
    return requested === "full" ? null : requested;
  });
  if (begun === null) return json(429, oauthError("slow_down", "Too many devices wait for an answer."), waitMinute);
  const url = `${origin}/device`;
  return json(200, {
    device_code: begun.deviceCode,
    user_code: begun.userCode,
    verification_uri: url,
    verification_uri_complete: `${url}?user_code=${begun.userCode}`,
    expires_in: begun.lasts_s,
    interval: begun.interval_s,
  });
}

const waitMinute = { "retry-after": "60" };
const agent_chars_max = 200;

/** The name of the calling program, as the program itself reports it. */
function agentOf({ request }: Call, fields: Fields): string {
  const words = [fields.get("client_id"), fields.get("surface"), request.headers.get("user-agent")];
  return cleaned([...new Set(words)].filter(Boolean).join(" "), agent_chars_max) || "unknown";
}

async function tokens(parts: IdentityParts, call: Call, fields: Fields): Promise<Response> {
  identityOf(parts);
  const grant = grants.get(required(fields, "grant_type"));
  if (!grant) return json(400, oauthError("unsupported_grant_type", `Use ${[...grants.keys()].join(", ")}.`));
  return json(200, answerOf(await bounded(parts, call, () => grant(parts, fields))));
}

function answerOf({ accessToken, lasts_s, refreshToken, scopes: granted, email }: Tokens) {
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: lasts_s,
    scope: granted.join(" "),
    ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
    // The address is not part of the standard. Clients show it, so that people notice a sign-in that is not their own.
    ...(email ? { email } : {}),
  };
}

function required(fields: Fields, name: string): string {
  const value = fields.get(name);
  if (!value) throw new Fault("missing_field", `The field '${name}' is missing.`);
  return value;
}

const oauthError = (error: string, error_description: string) => ({ error, error_description });

function refusal({ log }: Dependencies, call: Call, thrown: unknown): Response {
  if (thrown instanceof NotConfigured) throw notThere(call);
  if (thrown instanceof TokenRefused) {
    const status = thrown.error === "temporarily_unavailable" ? 503 : 400;
    return json(status, oauthError(thrown.error, thrown.message));
  }
  if (thrown instanceof IssuerAway) {
    log.event("warn", "issuer_away", { request_id: call.requestId, cause: thrown.message });
    const words = "The identity provider does not answer at the moment. Please try again.";
    return json(503, oauthError("temporarily_unavailable", words), { "retry-after": "5" });
  }
  if (!(thrown instanceof Fault) || thrown.status >= 500) throw thrown;
  const error = thrown.status === 429 ? "slow_down" : "invalid_request";
  return json(thrown.status, oauthError(error, thrown.message), retryAfter(thrown));
}
