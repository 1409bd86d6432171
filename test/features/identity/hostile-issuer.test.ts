// Sign-ins by an issuer that lies, fails or is an impostor: nobody is signed in, and an outage of the issuer ends no
// session.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { JWTPayload } from "jose";
import { type IdentityParts, NotAdmitted } from "../../../src/features/identity/identity.ts";
import { IssuerAway, IssuerRefused } from "../../../src/features/identity/issuer-clients.ts";
import { currentSession, leave } from "../../../src/features/identity/sessions.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { identityParts, settingsOf } from "../../harness/identity-parts.ts";
import { forged, issuerKey, type SignOptions, startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { begun, redirectUris } from "./begun.ts";

setDefaultTimeout(60_000);
const metadata = "/.well-known/openid-configuration";
const logoutEvent = { "http://schemas.openid.net/event/backchannel-logout": {} };

let db: Database;
let drop: () => Promise<void>;
let issuer: TestIssuer;
let other: TestIssuer;
let parts: IdentityParts;
beforeAll(async () => {
  ({ db, drop } = await openDatabase());
  [issuer, other] = await Promise.all([startIssuer(), startIssuer()]);
});
afterAll(async () => {
  await Promise.all([issuer[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
  await drop();
});
beforeEach(() => {
  const rules = ["staff", "ops"].map((has) => ({ claim: "groups", has, role: has === "ops" ? "admin" : "viewer" }));
  parts = identityParts(db, () => settingsOf([issuer, other], { rules }));
  issuer.away = false;
  issuer.answer("/token", null);
  issuer.answer("/jwks", null);
  issuer.answer(metadata, null);
});

/** The claims of a token; a claim that is undefined is removed. */
type Said = Record<string, unknown>;

interface Saying {
  claims?: Said;
  sign?: SignOptions;
  idToken?: string;
  refreshToken?: string;
}

let asked: URLSearchParams | null = null;
let askedBy: string | null = null;

/** Sets the tokens that the issuer returns for a code. */
function says({ claims = {}, sign = {}, idToken, refreshToken = "refresh-1" }: Saying, nonce: string) {
  issuer.answer("/token", async (request) => {
    asked = new URLSearchParams(await request.text());
    askedBy = request.headers.get("authorization");
    const payload = { sub: "ann", aud: "sluice", nonce, groups: ["staff"], sid: "s1", ...claims };
    const id_token = idToken ?? (await issuer.sign(payload as JWTPayload, sign));
    return Response.json({ access_token: "a", token_type: "Bearer", id_token, refresh_token: refreshToken });
  });
}

const begin = () => begun(parts, "console", issuer.issuer);

async function signIn(saying: Saying = {}, fields: Record<string, string> = {}) {
  const { nonce, finish } = await begin();
  says(saying, nonce);
  return finish({ fields });
}

/** Sets the issuer's discovery document. */
function publishes(more: object) {
  const endpoints = { authorization_endpoint: "authorize", token_endpoint: "token", jwks_uri: "jwks" };
  const own = Object.entries(endpoints).map(([name, path]) => [name, `${issuer.issuer}/${path}`]);
  issuer.answer(metadata, () => Response.json({ issuer: issuer.issuer, ...Object.fromEntries(own), ...more }));
}

const sessions = async () => (await db.query("select 1 from browser_session")).length;

async function refused(work: () => Promise<unknown>, as: new (message: string) => Error = IssuerRefused) {
  const before = await sessions();
  const thrown = await work().then(
    () => null,
    (cause: unknown) => cause,
  );
  expect(thrown).toBeInstanceOf(as);
  expect(await sessions()).toBe(before);
}

describe("a sign-in", () => {
  test("works with an honest answer, and proves with PKCE that it has begun it", async () => {
    const { secret, known } = await signIn();
    expect(known.memberships).toMatchObject([{ role: "viewer" }]);
    expect((await currentSession(parts, "console", secret))?.known.subject).toBe("ann");
    expect(asked?.get("code_verifier")).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(asked?.get("redirect_uri")).toBe(redirectUris.console);
  });

  test.each([[["plain"]], [[]], [undefined]])(
    "asks with S256 an issuer that says %p of PKCE (downgrade)",
    async (methods) => {
      publishes({ code_challenge_methods_supported: methods });
      const { url } = await begin();
      expect(url.searchParams.get("code_challenge_method")).toBe("S256");
      expect(url.searchParams.get("code_challenge")).toMatch(/^[A-Za-z0-9_-]{43}$/);
    },
  );

  const lies: Record<string, Saying> = {
    "another nonce": { claims: { nonce: "another" } },
    "no nonce": { claims: { nonce: undefined } },
    "another audience": { claims: { aud: "another-client" } },
    "another issuer's name": { claims: { iss: "https://evil.example" } },
    "an expired token": { claims: { iat: 1_000, exp: 2_000 } },
    "no expiry": { claims: { exp: undefined } },
    "a token of the future": { claims: { nbf: 4_000_000_000 } },
    "the token of a logout": { claims: { events: logoutEvent } },
    "no subject": { claims: { sub: undefined } },
  };
  test.each(Object.entries(lies))("is refused with %s", (_, saying) => refused(() => signIn(saying)));

  test("is refused with another issuer's key, even under the name of ours", async () => {
    const key = await issuerKey("RS256", issuer.keys[0]!.kid);
    await refused(() => signIn({ sign: { key } }));
    await refused(() => signIn({ sign: { key: other.keys[0]! } }));
  });

  test("is refused with `none`, and with HMAC by the public key", async () => {
    const seconds = Math.floor(Date.now() / 1000);
    const { nonce, finish } = await begin();
    const payload = { iss: issuer.issuer, sub: "ann", aud: "sluice", nonce, iat: seconds, exp: seconds + 300 };
    const secret = JSON.stringify(issuer.keys[0]!.publicJwk);
    const head = { alg: "HS256", typ: "JWT", kid: issuer.keys[0]!.kid };
    const text = forged(head, payload).replace(/\.$/, "");
    const mac = new Bun.CryptoHasher("sha256", secret).update(text).digest();
    for (const idToken of [forged({ alg: "none" }, payload), forged(head, payload, mac)]) {
      says({ idToken }, nonce);
      await refused(finish);
    }
  });

  test("is refused when the answer names another issuer (mix-up), or has another state or none", async () => {
    await refused(() => signIn({}, { iss: other.issuer }));
    await refused(() => signIn({}, { state: "another" }));
    await refused(() => signIn({}, { error: "access_denied" }));
  });

  test("that the issuer refuses says in the log what the issuer said, however long that is", async () => {
    const error_description = "Offline tokens not allowed\nfor the client";
    issuer.answer("/token", () => Response.json({ error: "not_allowed", error_description }, { status: 400 }));
    await expect((await begin()).finish()).rejects.toThrow(
      `${issuer.issuer}: it said "not_allowed: Offline tokens not allowed for the client"`,
    );
    const fields = { error: "access_denied", error_description: "x".repeat(5000) };
    const thrown = (await (await begin()).finish({ fields }).catch((cause: unknown) => cause)) as Error;
    expect(thrown.message).toStartWith(`${issuer.issuer}: it said "access_denied: xxx`);
    expect(thrown.message.length).toBeLessThan(500);
  });

  test("is refused with the cookie of another place, a changed one, and none", async () => {
    const { nonce, cookie: theirs, finish } = await begun(parts, "device", issuer.issuer);
    says({}, nonce);
    for (const cookie of [theirs, `${theirs.slice(0, -2)}AA`, "x", null])
      await refused(() => finish({ cookie, at: "console" }));
  });

  test("counts once, however often its answer comes, and for ten minutes", async () => {
    const { nonce, finish } = await begin();
    says({}, nonce);
    await refused(() => finish({ now_ms: () => Date.now() + 600_001 }));
    const all = await Promise.allSettled([1, 2, 3].map(() => finish()));
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("an issuer that is away at any step is an outage, and nothing is stored", async () => {
    const down = () => new Response("down", { status: 503 });
    issuer.away = true;
    await refused(() => signIn(), IssuerAway);
    issuer.away = false;
    parts = identityParts(db, () => settingsOf([issuer, other]));
    issuer.answer("/jwks", down);
    await refused(() => signIn(), IssuerAway);
    issuer.answer("/jwks", null);
    const { finish } = await begin();
    issuer.answer("/token", down);
    await refused(finish, IssuerAway);
  });

  test("follows no redirect of an issuer, and reads no endless answer", async () => {
    issuer.answer("/token", () => new Response(null, { status: 307, headers: { location: `${other.issuer}/token` } }));
    const finish = async () => (await begin()).finish();
    await refused(finish, IssuerAway);
    expect(other.asked("/token")).toBe(0);
    const endless = () => new Response(JSON.stringify({ access_token: "x".repeat(2_000_000), token_type: "Bearer" }));
    issuer.answer("/token", endless);
    await refused(finish, Error);
  });

  test.each([
    ["issuer", "https://evil.example"],
    ["authorization_endpoint", "javascript:alert(1)"],
    ["authorization_endpoint", "data:text/html,hello"],
    ["authorization_endpoint", "/authorize"],
    ["authorization_endpoint", 1],
    ["end_session_endpoint", "javascript:alert(1)"],
    ["token_endpoint", "file:///etc/passwd"],
    ["userinfo_endpoint", "ftp://login.example/"],
    ["jwks_uri", "data:application/json,{}"],
  ])("an issuer whose %s is %s is not used", async (name, said) => {
    publishes({ [name]: said });
    await refused(begin, IssuerAway);
  });
});

describe("a suspension", () => {
  const suspend = (id: string) => administration(db).suspendPerson(id, "cli:root");
  const resume = (id: string) => administration(db).resumePerson(id, "cli:root");

  test("ends the sessions for good: one that nobody used meanwhile is gone after a resumption, too", async () => {
    const { secret, known } = await signIn();
    const { id } = known;
    await suspend(id);
    await resume(id);
    expect(await currentSession(parts, "console", secret)).toBeNull();
    const again = await signIn();
    expect((await currentSession(parts, "console", again.secret))?.known.id).toBe(id);
  });

  test("in the middle of a sign-in lets no session begin", async () => {
    const { known } = await signIn();
    const { id } = known;
    const { begin } = parts.sessions;
    parts.sessions.begin = async (session) => {
      await suspend(id);
      return begin(session);
    };
    await db.query("delete from browser_session");
    await refused(signIn, NotAdmitted);
    await resume(id);
  });
});

describe("a session is asked for again each hour", () => {
  const old = (ms: number) =>
    db.query("update browser_session set confirmed_at = store_now() - $1::bigint * interval '1 ms'", [ms]);

  test("and goes on with a yes, which may change what one may do", async () => {
    const { secret } = await signIn();
    await old(3_599_000);
    issuer.answer("/token", null);
    expect(await currentSession(parts, "console", secret)).not.toBeNull();
    await old(3_600_000);
    const claims = { nonce: undefined, name: "Ann", groups: ["ops"] };
    says({ refreshToken: "refresh-2", claims }, "");
    const { known } = (await currentSession(parts, "console", secret))!;
    expect([known.name, known.memberships.map(({ role }) => role)]).toEqual(["Ann", ["admin"]]);
    expect(asked?.get("refresh_token")).toBe("refresh-1");
    await old(3_600_000);
    await currentSession(parts, "console", secret);
    expect(asked?.get("refresh_token")).toBe("refresh-2");
  });

  test("ends with a no, with the last membership, and with an answer about somebody else", async () => {
    const no = () => Response.json({ error: "invalid_grant" }, { status: 400 });
    for (const answer of ["no", { claims: { groups: [] } }, { claims: { sub: "bob" } }] as const) {
      const { secret } = await signIn();
      await old(3_600_000);
      if (answer === "no") issuer.answer("/token", no);
      else says({ ...answer, claims: { ...answer.claims, nonce: undefined } }, "");
      expect(await currentSession(parts, "console", secret)).toBeNull();
      says({}, "");
      await old(0);
      expect(await currentSession(parts, "console", secret)).toBeNull();
    }
  });

  test("outlives an issuer that is away, and a wrong secret of ours", async () => {
    const { secret } = await signIn();
    await old(3_600_000);
    issuer.answer("/token", () => new Response("down", { status: 502 }));
    expect(await currentSession(parts, "console", secret)).not.toBeNull();
    await db.query("update browser_session set asking_until = null");
    issuer.answer("/token", () => Response.json({ error: "invalid_client" }, { status: 401 }));
    expect(await currentSession(parts, "console", secret)).not.toBeNull();
  });

  test("by one of the requests that come at once", async () => {
    const { secret } = await signIn();
    await old(3_600_000);
    let count = 0;
    issuer.answer("/token", async () => {
      count++;
      await Bun.sleep(20);
      const id_token = await issuer.sign({ sub: "ann", aud: "sluice", groups: ["staff"] });
      return Response.json({ access_token: "a", token_type: "Bearer", id_token });
    });
    const all = await Promise.all([1, 2, 3, 4].map(() => currentSession(parts, "console", secret)));
    expect(all.every(Boolean)).toBe(true);
    expect(count).toBe(1);
  });
});

describe("a logout token", () => {
  const token = (claims: Said = {}, options: SignOptions = {}) =>
    issuer.sign({ aud: "sluice", sid: "s1", jti: crypto.randomUUID(), events: logoutEvent, ...claims } as JWTPayload, {
      typ: "logout+jwt",
      ...options,
    });

  test("ends what was begun under its session, once", async () => {
    const [one, two] = [await signIn(), await signIn({ claims: { sid: "s2" } })];
    const text = await token({ sid: "s2" });
    expect(await leave(parts, text)).toEqual({ sessions: 1, signIns: 0 });
    expect(await currentSession(parts, "console", two.secret)).toBeNull();
    expect(await currentSession(parts, "console", one.secret)).not.toBeNull();
    await expect(leave(parts, text)).rejects.toThrow("used before");
  });

  test("with a subject alone ends all of hers, and nothing that was issued before counts", async () => {
    const [one, two] = [await signIn(), await signIn({ claims: { sid: "s2" } })];
    await leave(parts, await token({ sid: undefined, sub: "ann" }));
    for (const { secret } of [one, two]) expect(await currentSession(parts, "console", secret)).toBeNull();
    const found = await parts.people.personOf(issuer.issuer, "ann");
    expect(found?.notBefore).not.toBeNull();
  });

  test("that met a failing store does its work when it comes again", async () => {
    const { secret } = await signIn({ claims: { sid: "s3" } });
    const text = await token({ sid: "s3" });
    const signIns = { ...parts.signIns, endAtIssuer: () => Promise.reject(new Error("the store is away")) };
    await expect(leave({ ...parts, signIns }, text)).rejects.toThrow("away");
    await leave(parts, text);
    expect(await currentSession(parts, "console", secret)).toBeNull();
  });

  const wrong: Record<string, Said> = {
    "that is old": { iat: Math.floor(Date.now() / 1000) - 200 },
    "of the future": { iat: Math.floor(Date.now() / 1000) + 200 },
    "without an instant": { iat: undefined },
    "for another client": { aud: "another" },
    "of another issuer": { iss: "https://evil.example" },
    "with a nonce": { nonce: "n" },
    "without its event": { events: undefined },
    "with another event": { events: { "https://example.com/event": {} } },
    "whose event is no object": { events: { "http://schemas.openid.net/event/backchannel-logout": "x" } },
    "without an id": { jti: undefined },
    "about nobody": { sid: undefined },
  };
  test.each(Object.entries(wrong))("%s ends nothing", async (_, claims) => {
    const { secret } = await signIn();
    await expect(token(claims).then((text) => leave(parts, text))).rejects.toBeInstanceOf(IssuerRefused);
    expect(await currentSession(parts, "console", secret)).not.toBeNull();
  });

  test("of another key, an ID token, and no token at all end nothing", async () => {
    const { secret } = await signIn();
    const idToken = await issuer.sign({ sub: "ann", aud: "sluice", sid: "s1", jti: "1" });
    const foreign = await token({}, { key: other.keys[0]! });
    for (const text of [foreign, idToken, "", "a.b.c", forged({ alg: "none" }, { iss: issuer.issuer, sid: "s1" })])
      await expect(leave(parts, text)).rejects.toBeInstanceOf(IssuerRefused);
    expect(await currentSession(parts, "console", secret)).not.toBeNull();
  });

  test("of keys that nobody knows asks for the keys once in half a minute", async () => {
    await leave(parts, await token());
    const before = issuer.asked("/jwks");
    for (let count = 0; count < 20; count++)
      await expect(token({}, { kid: crypto.randomUUID() }).then((text) => leave(parts, text))).rejects.toThrow();
    expect(issuer.asked("/jwks") - before).toBeLessThanOrEqual(1);
  });
});

test.each([
  [undefined, "header"],
  [["client_secret_post", "client_secret_basic"], "header"],
  [["private_key_jwt"], "header"],
  [["private_key_jwt", "client_secret_post"], "body"],
])("an issuer that takes %p gets the client's secret in the %s", async (methods, place) => {
  publishes({ token_endpoint_auth_methods_supported: methods });
  await signIn();
  const secret = settingsOf([issuer]).issuers[0]!.clientSecret;
  expect(askedBy).toBe(place === "header" ? `Basic ${btoa(`sluice:${secret}`)}` : null);
  expect(asked?.get("client_secret")).toBe(place === "body" ? secret : null);
});
