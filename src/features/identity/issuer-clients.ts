/**
 * THE MODULE IDENTITY: sign-in of people through identity issuers. This file: clients of issuers, made from their
 * discovery documents. sign-in.ts: sign-in with a browser. sessions.ts: browser sessions. devices.ts, tokens.ts:
 * sign-in and tokens of devices.
 */
import { createRemoteJWKSet, type JWTVerifyGetKey, customFetch as keysFetch } from "jose";
import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  clockTolerance,
  customFetch,
  discovery,
  None,
  type ServerMetadata,
} from "openid-client";
import type { Issuer } from "../../core/auth/identity.ts";

/**
 * Thrown if the issuer did not answer, or answered in another protocol. The error says nothing about the person, so no
 * session or sign-in ends.
 */
export class IssuerAway extends Error {}

/** Thrown if the issuer refused the request, or if its response or token is not valid. */
export class IssuerRefused extends Error {}

export interface IssuerClient {
  issuer: Issuer;
  configuration: Configuration;
  metadata: Readonly<ServerMetadata>;
  /**
   * Finds the issuer's public key that a token's header names. If the key is unknown, the issuer's keys are fetched
   * again, at most once in half a minute.
   */
  keys: JWTVerifyGetKey;
}

export interface IssuerClients {
  /** The client of an issuer. Throws IssuerAway. */
  of(issuer: Issuer): Promise<IssuerClient>;
}

const answer_s = 5;
const answer_bytes_max = 1024 * 1024;
/** The time for which a discovery document, or a failure to fetch it, is cached. */
const known_ms = 10 * 60_000;
const failed_ms = 2_000;
const keys_ms = 10 * 60_000;
const unknownKey_ms = 30_000;
/** The tolerated difference between an issuer's clock and the node's clock. */
export const clockTolerance_s = 30;

interface CachedClient {
  client: Promise<IssuerClient>;
  until_ms: number;
}

/**
 * Makes the clients of issuers, and caches each client until its discovery document is too old. `now_ms`: a monotonic
 * clock.
 */
export function issuerClients({ now_ms }: { now_ms: () => number }): IssuerClients {
  const known = new Map<string, CachedClient>();
  return {
    of(issuer) {
      // All settings of the issuer are part of the cache key, because a reload may change any of them.
      const name = JSON.stringify(issuer);
      const found = known.get(name);
      if (found && now_ms() < found.until_ms) return found.client;
      for (const [other, { until_ms }] of known) if (until_ms <= now_ms()) known.delete(other);
      const client = discovered(issuer);
      const entry: CachedClient = { client, until_ms: now_ms() + known_ms };
      known.set(name, entry);
      client.catch(() => {
        entry.until_ms = now_ms() + failed_ms;
      });
      return client;
    },
  };
}

async function discovered(issuer: Issuer): Promise<IssuerClient> {
  const url = new URL(issuer.issuer);
  // The settings allow plain HTTP only on the same machine.
  const execute = url.protocol === "http:" ? [allowInsecureRequests] : [];
  const options = { execute, timeout: answer_s, [customFetch]: boundedFetch };
  try {
    const metadata = (await discovery(url, clientOf(issuer), undefined, None(), options)).serverMetadata();
    if (metadata.issuer !== issuer.issuer) throw new Error(`it says that it is ${metadata.issuer}`);
    if (!metadata.jwks_uri) throw new Error("its discovery document has no jwks_uri");
    requireAddresses(metadata, url.protocol);
    const configuration = new Configuration(
      metadata,
      clientOf(issuer),
      { [clockTolerance]: clockTolerance_s },
      authenticationOf(issuer, metadata),
    );
    configuration.timeout = answer_s;
    configuration[customFetch] = boundedFetch;
    for (const extension of execute) extension(configuration);
    const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), {
      timeoutDuration: answer_s * 1000,
      cooldownDuration: unknownKey_ms,
      cacheMaxAge: keys_ms,
      [keysFetch]: boundedFetch,
    });
    return { issuer, configuration, metadata, keys };
  } catch (cause) {
    throw new IssuerAway(`the issuer ${issuer.issuer} cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

const addresses = [
  "authorization_endpoint",
  "token_endpoint",
  "userinfo_endpoint",
  "end_session_endpoint",
  "jwks_uri",
] as const;

/**
 * Checks the URLs in the discovery document. Browsers are redirected to some of these URLs, so none may be a
 * `javascript:` URL; none may be plain HTTP if the issuer's own URL is https.
 */
function requireAddresses(metadata: Readonly<ServerMetadata>, protocol: string): void {
  for (const name of addresses) {
    const address = metadata[name];
    if (address === undefined) continue;
    const found = typeof address === "string" ? URL.parse(address)?.protocol : undefined;
    if (found !== "https:" && !(found === "http:" && protocol === "http:"))
      throw new Error(`${name} of its discovery document is not an https address`);
  }
}

/** The client id; for an issuer without sign-ins a placeholder, because the library requires an id. */
const clientOf = ({ clientId }: Issuer) => clientId ?? "none";

/**
 * The way in which this service authenticates as a client of the issuer: by HTTP Basic, the standard's default, or,
 * since some issuers accept only that, in the body.
 */
function authenticationOf({ clientSecret }: Issuer, metadata: Readonly<ServerMetadata>) {
  if (clientSecret === null) return None();
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return methods.includes("client_secret_basic") || !methods.includes("client_secret_post")
    ? ClientSecretBasic(clientSecret)
    : ClientSecretPost(clientSecret);
}

/** A `fetch` that aborts responses that are too long. */
async function boundedFetch(url: string, options: object): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  let bytes = 0;
  const bounded = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        bytes += piece.byteLength;
        if (bytes > answer_bytes_max) controller.error(new Error("the answer of the issuer is too long"));
        else controller.enqueue(piece);
      },
    }),
  );
  return new Response(bounded ?? null, { status: response.status, headers: response.headers });
}

export function reasonOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? `: ${cause.cause.message}` : "";
  return (cause instanceof Error ? cause.message : String(cause)) + inner;
}
