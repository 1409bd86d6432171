/**
 * An OpenID Connect issuer for tests, on loopback, with discovery, keys, and tokens of any content, valid or not. A
 * test can replace the response of each path and make the issuer unavailable; the issuer counts the requests to each
 * path.
 */
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

export interface IssuerKey {
  kid: string;
  algorithm: string;
  privateKey: CryptoKey;
  publicJwk: JWK;
}

export interface SignOptions {
  /** The key that signs; by default the newest one. The header has this key's `kid` unless `header` sets another. */
  key?: IssuerKey;
  kid?: string | null;
  typ?: string;
  /** Additional members of the token's header. */
  header?: Record<string, unknown>;
}

export type Answer = (request: Request) => Response | Promise<Response>;

export interface TestIssuer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`: the value of `iss`. */
  issuer: string;
  /** All keys of the issuer's JWKS; the last one signs. */
  keys: IssuerKey[];
  /** Adds a key, which signs from now on. The JWKS contains it unless it is `hidden`. */
  rotate(algorithm?: string, options?: { hidden?: boolean }): Promise<IssuerKey>;
  /** Removes a key from the JWKS. */
  retire(kid: string): void;
  /**
   * Signs a token. The claims `iss`, `iat` and `exp` (in five minutes) are added by default; a claim given as undefined
   * is left out.
   */
  sign(claims: object, options?: SignOptions): Promise<string>;
  /**
   * Replaces the response of a path, also of `/.well-known/openid-configuration` and `/jwks`; null restores the
   * issuer's own response.
   */
  answer(path: string, answer: Answer | null): void;
  /** How often a path was requested. */
  asked(path: string): number;
  /** Whether the issuer responds with 503 to every request. */
  away: boolean;
}

export async function issuerKey(algorithm = "RS256", kid: string = crypto.randomUUID()): Promise<IssuerKey> {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  const publicJwk = { ...(await exportJWK(pair.publicKey)), kid, alg: algorithm, use: "sig" };
  return { kid, algorithm, privateKey: pair.privateKey, publicJwk };
}

export async function startIssuer(algorithm = "RS256"): Promise<TestIssuer> {
  const keys = [await issuerKey(algorithm)];
  const hidden = new Set<string>();
  const answers = new Map<string, Answer>();
  const counts = new Map<string, number>();
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handle });
  const issuer = `http://127.0.0.1:${server.port}`;

  async function handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
    if (test.away) return new Response(null, { status: 503 });
    const scripted = answers.get(pathname);
    if (scripted) return scripted(request);
    if (pathname === "/.well-known/openid-configuration") return Response.json(discovery());
    if (pathname === "/jwks")
      return Response.json({ keys: keys.filter(({ kid }) => !hidden.has(kid)).map((key) => key.publicJwk) });
    return new Response("not found", { status: 404 });
  }

  const discovery = () => ({
    issuer,
    jwks_uri: `${issuer}/jwks`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  });

  const test: TestIssuer = {
    issuer,
    keys,
    away: false,
    async rotate(next = "RS256", options = {}) {
      const key = await issuerKey(next);
      keys.push(key);
      if (options.hidden) hidden.add(key.kid);
      return key;
    },
    retire: (kid) => void hidden.add(kid),
    async sign(claims, options = {}) {
      const key = options.key ?? keys.at(-1)!;
      const kid = options.kid === undefined ? key.kid : options.kid;
      const seconds = Math.floor(Date.now() / 1000);
      const payload = { iss: issuer, iat: seconds, exp: seconds + 300, ...claims };
      const header = { alg: key.algorithm, typ: options.typ ?? "JWT", ...(kid === null ? {} : { kid }) };
      return new SignJWT(payload).setProtectedHeader({ ...header, ...options.header }).sign(key.privateKey);
    },
    answer(path, one) {
      if (one) answers.set(path, one);
      else answers.delete(path);
    },
    asked: (path) => counts.get(path) ?? 0,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return test;
}

/** A token assembled from any header, payload and signature. */
export function forged(header: object, payload: object, signature: Uint8Array = new Uint8Array()): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part(header)}.${part(payload)}.${Buffer.from(signature).toString("base64url")}`;
}
