// Callers with a token of their issuer in place of a key, valid and forged, over a real database.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createPublicKey } from "node:crypto";
import { SignJWT } from "jose";
import { noBudget } from "../../../src/admin/store/budget.ts";
import { identityOf } from "../../../src/config/identity.ts";
import { authenticator } from "../../../src/core/auth/authenticate.ts";
import { unknownCredentialLimits, unknownCredentials } from "../../../src/core/auth/unknown-credentials.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { callerTokens } from "../../../src/features/identity/callers.ts";
import { identityTokens } from "../../../src/features/identity/known-tokens.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { busyness } from "../../harness/busyness.ts";
import { laterFaultOf } from "../../harness/faults.ts";
import { identityParts } from "../../harness/identity-parts.ts";
import { forged, issuerKey, startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { until } from "../../harness/until.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";

setDefaultTimeout(30_000);
const audience = "sluice-api";
const actor = "cli:ann";
let ann = { sub: "", aud: audience, groups: ["research"] };
let owned: Owned;
let issuer: TestIssuer;
let other: TestIssuer;
let node: ReturnType<typeof startNode>;
let stopHearing: () => Promise<void>;

function settings(rules: object[] = []) {
  return identityOf({
    issuers: [
      { issuer: issuer.issuer, client_id: "sluice", client_secret: "secret", audiences: [audience] },
      { issuer: other.issuer, client_id: "sluice", client_secret: "secret", audiences: [audience] },
    ],
    rules: [
      { issuer: issuer.issuer, claim: "groups", has: "research", organization: "acme", team: "lab", role: "member" },
      {
        ...{ issuer: issuer.issuer, claim: "azp", is: "ci", organization: "acme", role: "member", kind: "service" },
        ...{ scopes: ["models:read"], models: ["a/b"] },
      },
      ...rules,
    ],
  } as never);
}

function startNode() {
  let inForce = settings();
  const clock = { skipped_ms: 0 };
  const now_ms = () => performance.now() + clock.skipped_ms;
  const parts = identityParts(owned.db, () => inForce);
  const limits = unknownCredentialLimits;
  const tokens = identityTokens({ verifier: callerTokens(parts), now_ms, limits });
  const auth = authenticator({ directory: directory(owned.db), now_ms, policy: () => inForce, tokens });
  let addresses = 0;
  return {
    auth,
    clock,
    reload: (rules: object[]) => {
      inForce = settings(rules);
    },
    call: async (token: string, address = `192.0.2.${++addresses}`) =>
      auth.authenticate(new Headers({ authorization: `Bearer ${token}` }), address),
  };
}

beforeAll(async () => {
  owned = await openDatabase();
  [issuer, other] = await Promise.all([startIssuer(), startIssuer()]);
  const acme = { id: idOf(Bun.randomUUIDv7(), "org_"), slug: "acme", name: "Acme", plan: null, actor };
  await administration(owned.db).createOrganization(acme);
  await administration(owned.db).createTeam({
    ...{ id: idOf(Bun.randomUUIDv7(), "team_"), organizationId: acme.id, name: "lab", actor },
    limits: noBudget,
  });
});
/** How often the issuer's keys had been requested before the test. */
let fetchedBefore = 0;
const fetched = () => issuer.asked("/jwks") - fetchedBefore;
beforeEach(async () => {
  await stopHearing?.();
  // All tests share the issuers, whose keys take long to generate. Each test has a new person and a new node.
  ann = { ...ann, sub: crypto.randomUUID() };
  issuer.keys.length = 1;
  issuer.away = false;
  issuer.answer("/jwks", null);
  fetchedBefore = issuer.asked("/jwks");
  node = startNode();
  stopHearing = await revocations(owned.db, { changed: (id, hash) => node.auth.forget(id, hash) });
});
afterAll(async () => {
  await stopHearing();
  await Promise.all([issuer[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
  await owned.drop();
});

const now_s = () => Math.floor(Date.now() / 1000);
const refusal = async (work: Promise<unknown>) => (await laterFaultOf(work))!;
const refused = async (token: string) => {
  const fault = await refusal(node.call(token));
  expect([fault.status, fault.code]).toEqual([401, "invalid_api_key"]);
  return fault.message;
};
const peopleStored = async () => (await owned.db.query("select id from person")).length;

describe("an honest token", () => {
  test("calls with the rights of its rule, as one key for all tokens of a person there", async () => {
    const first = await node.call(await issuer.sign(ann));
    expect(first.organization.slug).toBe("acme");
    expect(first.key.scopes).toEqual(["models:read", "inference:create", "usage:read"]);
    const second = await node.call(await issuer.sign({ ...ann, jti: "2" }));
    expect(second.key.id).toBe(first.key.id);
    const ci = await node.call(await issuer.sign({ sub: "ci-1", aud: audience, azp: "ci" }));
    expect([ci.key.scopes, ci.key.models]).toEqual([["models:read"], ["a/b"]]);
  });

  test("is verified once, at once by many, and then costs the issuer and the database nothing", async () => {
    const token = await issuer.sign(ann);
    const all = await Promise.all(Array.from({ length: 20 }, () => node.call(token)));
    expect(new Set(all.map(({ secretHash }) => secretHash)).size).toBe(1);
    expect(fetched()).toBe(1);
    issuer.away = true;
    expect((await node.call(token)).key.id).toBe(all[0]!.key.id);
  });

  test("is no longer remembered when it has ended", async () => {
    const token = await issuer.sign({ ...ann, exp: now_s() + 60 });
    await node.call(token);
    node.clock.skipped_ms = 61_000;
    issuer.answer("/jwks", () => Response.json({ keys: [] }));
    // By the node's clock the token has expired, so the cached result is not used. The verification uses the real
    // clock, by which the token is still valid.
    expect((await node.call(token)).key.id).toBeTruthy();
    await refused(await issuer.sign({ ...ann, exp: now_s() - 60 }));
  });

  test("ends with the person's suspension, sign-out and membership, on this node at once", async () => {
    const token = await issuer.sign({ ...ann, sub: "eve", iat: now_s() - 10 });
    const { person } = await node.call(token);
    const stands = async () => ("refusal" in (await node.auth.standing((await held).secretHash)) ? "ends" : "goes on");
    const held = node.call(token);
    expect(await stands()).toBe("goes on");
    await administration(owned.db).suspendPerson(person!.id, actor);
    await until(async () => (await stands()) === "ends", 5_000, "the end of what runs");
    expect((await refusal(node.call(token))).code).toBe("person_suspended");
    await administration(owned.db).resumePerson(person!.id, actor);
    await until(async () => (await stands()) === "goes on", 5_000, "the resumption");
    await people(owned.db).endIssued(person!.id, actor);
    await until(async () => (await stands()) === "ends", 5_000, "the end of the token");
    expect((await refusal(node.call(token))).code).toBe("revoked_api_key");
    const later = await issuer.sign({ ...ann, sub: "eve", iat: now_s() + 2 });
    expect((await node.call(later)).person!.id).toBe(person!.id);
    await node.call(await issuer.sign({ ...ann, sub: "eve", iat: now_s() + 3, groups: ["research", "x"] }));
  });

  test("of before the last sign-in leaves the memberships of that sign-in, also where it was never seen", async () => {
    const rule = { claim: "groups", has: "ops", organization: "acme", role: "organization-admin" };
    node.reload([{ issuer: issuer.issuer, ...rule }]);
    const older = await issuer.sign({ ...ann, groups: ["ops"], iat: now_s() - 10 });
    await node.call(await issuer.sign({ ...ann, iat: now_s() - 5 }));
    const { person } = await node.call(older);
    expect((await people(owned.db).findPerson(person!.id))!.memberships).toMatchObject([
      { role: "member", team: { name: "lab" } },
    ]);
  });

  test("may have any characters in its other claims: a name is made plain, an address or group that is not plain is none", async () => {
    const odd = { email: "ann\u0000@example.com", email_verified: true, name: "\u202eAnn\u0007\ud800", sid: "s\u0000" };
    const { person } = await node.call(
      await issuer.sign({ ...ann, ...odd, sub: "odd", groups: ["research", "a\u0000", "\u202eb"] }),
    );
    const known = (await people(owned.db).findPerson(person!.id))!;
    expect(known).toMatchObject({ name: "?Ann?\ufffd", email: null, isEmailVerified: false, groups: ["research"] });
    // If the NUL character were removed, the address would be another person's.
    node.reload([
      { issuer: issuer.issuer, claim: "email", is: "ann@example.com", organization: "acme", role: "member" },
    ]);
    await refused(await issuer.sign({ ...odd, sub: "odd", aud: audience, groups: [] }));
  });

  test("is judged anew by settings that were reloaded", async () => {
    const token = await issuer.sign({ sub: "flo", aud: audience, groups: ["newcomers"] });
    await refused(token);
    node.reload([{ issuer: issuer.issuer, claim: "groups", has: "newcomers", organization: "acme", role: "member" }]);
    expect((await node.call(token)).organization.slug).toBe("acme");
    node.reload([]);
    await refused(token);
  });

  test("follows a key of the issuer that is new", async () => {
    await node.call(await issuer.sign(ann));
    const key = await issuer.rotate("ES256");
    // The key set was fetched a moment ago. It is fetched again for an unknown key ID, but not within half a minute.
    const fault = await refusal(node.call(await issuer.sign({ ...ann, jti: "new" }, { key })));
    expect(fault.code).toBe("invalid_api_key");
    node = startNode();
    expect((await node.call(await issuer.sign({ ...ann, jti: "newer" }, { key }))).key.id).toBeTruthy();
  });
});

const unsigned = (header: object, payload: object) => forged(header, payload);
const attacks: Record<string, () => Promise<string> | string> = {
  "of another audience": () => issuer.sign({ ...ann, aud: "another-api" }),
  "for the client, an ID token": () => issuer.sign({ ...ann, aud: "sluice" }),
  "an ID token with a second audience": () => issuer.sign({ ...ann, aud: [audience, "sluice"], nonce: "n" }),
  "a logout token by its events": () => issuer.sign({ ...ann, events: { "http://schemas.openid.net/event/x": {} } }),
  "a logout token by its type": () => issuer.sign(ann, { typ: "logout+jwt" }),
  "of an issuer that is not trusted": () => issuer.sign({ ...ann, iss: "https://evil.example" }),
  "of another trusted issuer, signed with its key": () => other.sign({ ...ann, iss: issuer.issuer }),
  "under the kid of ours with a key of one's own": async () =>
    issuer.sign(ann, { key: { ...(await issuerKey()), kid: issuer.keys[0]!.kid } }),
  "with its key in its header": async () => {
    const own = await issuerKey();
    return issuer.sign(ann, { key: own, kid: null, header: { jwk: own.publicJwk } });
  },
  "with `none`": () =>
    unsigned({ alg: "none", typ: "JWT" }, { iss: issuer.issuer, ...ann, iat: now_s(), exp: now_s() + 60 }),
  "with HMAC by the public key": async () => {
    const { publicJwk, kid } = issuer.keys[0]!;
    const pem = createPublicKey({ key: publicJwk as never, format: "jwk" }).export({ type: "spki", format: "pem" });
    const payload = { iss: issuer.issuer, ...ann, iat: now_s(), exp: now_s() + 60 };
    return new SignJWT(payload).setProtectedHeader({ alg: "HS256", kid }).sign(Buffer.from(pem as string));
  },
  "that has expired": () => issuer.sign({ ...ann, iat: now_s() - 600, exp: now_s() - 60 }),
  "that does not hold yet": () => issuer.sign({ ...ann, nbf: now_s() + 600 }),
  "that was issued in the future": () => issuer.sign({ ...ann, iat: now_s() + 600, exp: now_s() + 900 }),
  "that lasts longer than 24 hours": () => issuer.sign({ ...ann, exp: now_s() + 25 * 3600 }),
  "that was issued more than 24 hours ago": () => issuer.sign({ ...ann, iat: now_s() - 25 * 3600 }),
  "without an end": () => issuer.sign({ ...ann, exp: undefined }),
  "without an instant of issue": () => issuer.sign({ ...ann, iat: undefined }),
  "without a subject": () => issuer.sign({ ...ann, sub: undefined }),
  "with a NUL in its subject": () => issuer.sign({ ...ann, sub: "ann\u0000" }),
  "with a turned subject": () => issuer.sign({ ...ann, sub: "\u202enna" }),
  "that no rule admits": () => issuer.sign({ ...ann, groups: ["others"] }),
  "with a rule of another issuer": () => other.sign(ann),
  "with a list in the place of a text": () => issuer.sign({ sub: "x", aud: audience, azp: ["ci"] }),
  "whose payload was changed": async () => {
    const [head, , signature] = (await issuer.sign(ann)).split(".");
    const payload = { iss: issuer.issuer, ...ann, sub: "admin", iat: now_s(), exp: now_s() + 60 };
    return `${head}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}.${signature}`;
  },
  "that is no JSON": () => "eyJhbGciOiJSUzI1NiJ9.eyJ9.AAAA",
};

describe("a token that does not hold is refused in the same words, and nothing is stored:", () => {
  let words: string | null = null;
  test.each(Object.entries(attacks))("%s", async (_, make) => {
    const before = await peopleStored();
    const message = await refused(await make());
    words ??= message;
    expect(message).toBe(words);
    expect(await peopleStored()).toBe(before);
  });

  test("one that is too long is no token to look at", async () => {
    const fault = await refusal(node.call(await issuer.sign({ ...ann, filler: "x".repeat(16_000) })));
    expect([fault.status, fault.code]).toEqual([401, "invalid_api_key"]);
    expect(fetched()).toBe(0);
  });
});

describe("a flood", () => {
  test("of unknown kids asks for the keys once in half a minute", async () => {
    await node.call(await issuer.sign(ann));
    const stranger = await issuerKey();
    for (let at = 0; at < 50; at++)
      await refused(await issuer.sign({ ...ann, jti: String(at) }, { key: stranger, kid: `kid-${at}` }));
    expect(fetched()).toBeLessThanOrEqual(2);
  });

  test("of forged tokens is bounded by address, and a newcomer from elsewhere still gets in", async () => {
    await node.call(await issuer.sign(ann));
    const stranger = await issuerKey();
    const codes = new Map<string, number>();
    const token = async (at: number) => issuer.sign({ ...ann, jti: String(at) }, { key: stranger });
    const forgeries = await Promise.all(Array.from({ length: 500 }, (_, at) => token(at)));
    for (const forgery of forgeries) {
      const { code } = await refusal(node.call(forgery, "198.51.100.1"));
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect(codes.get("invalid_api_key")).toBeLessThanOrEqual(360);
    expect(codes.get("rate_limit_exceeded") ?? 0).toBeGreaterThan(0);
    const started = performance.now();
    expect((await node.call(await issuer.sign({ ...ann, jti: "honest" }), "203.0.113.1")).organization.slug).toBe(
      "acme",
    );
    expect(performance.now() - started).toBeLessThan(5_000 * busyness());
  });
});

test("a token that was refused for its address's failures is looked at again once those are past", async () => {
  const verifier = {
    settings,
    verify: async () => ({ keyHash: new Uint8Array(32), issuedAt_ms: 0, lasts_ms: 60_000 }),
  };
  let now_ms = 0;
  const limits = { ...unknownCredentialLimits, failures_of_one_address_per_minute: 1 };
  const tokens = identityTokens({ verifier, now_ms: () => now_ms, limits });
  const fault = new Fault("invalid_api_key", "no");
  for (let time = 0; time < 3; time++) tokens.failed("a", fault);
  await expect(Promise.resolve(tokens.known("token", "a"))).rejects.toThrow();
  now_ms += 120_000;
  expect(await tokens.known("token", "a")).toMatchObject({ issuedAt_ms: 0 });
});

test("of checks that fail there are so many a second, and more for addresses without a failure alone", async () => {
  const one = { burst: 1, per_second: 0.001 };
  const limits = { ...unknownCredentialLimits, fruitless_lookups: one, unblemished: one };
  const guard = unknownCredentials(limits, () => 0);
  const fails = async (address: string) => {
    (await guard.enter(address)).leave(false);
    guard.failed(address, new Fault("invalid_api_key", "no"));
  };
  await fails("198.51.100.1");
  expect((await refusal(guard.enter("198.51.100.1"))).code).toBe("overloaded");
  (await guard.enter("203.0.113.1")).leave(true);
  await fails("203.0.113.2");
  expect((await refusal(guard.enter("203.0.113.3"))).code).toBe("overloaded");
});

describe("an issuer that is away", () => {
  test("is an outage for a new token, and nobody is called a stranger", async () => {
    issuer.away = true;
    const fault = await refusal(node.call(await issuer.sign(ann)));
    expect([fault.status, fault.code, fault.details.retryAfterSeconds]).toEqual([503, "storage_unavailable", 2]);
  });

  test("costs nobody a request whose key of the issuer is known", async () => {
    await node.call(await issuer.sign(ann));
    issuer.away = true;
    expect((await node.call(await issuer.sign({ ...ann, jti: "later" }))).organization.slug).toBe("acme");
  });
});
