// Tokens of devices and workloads, by a test issuer that is down, refuses requests, or lies.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { JWTPayload } from "jose";
import { noBudget } from "../../../src/admin/store/budget.ts";
import { hashKey } from "../../../src/core/auth/credential.ts";
import { judge } from "../../../src/core/auth/verdict.ts";
import { type Credential, scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { approveDevice, requestDevice } from "../../../src/features/identity/devices.ts";
import type { IdentityParts } from "../../../src/features/identity/identity.ts";
import { IssuerAway } from "../../../src/features/identity/issuer-clients.ts";
import { currentSession, leave } from "../../../src/features/identity/sessions.ts";
import {
  byAssertion,
  byDeviceCode,
  byRefreshToken,
  revoke,
  TokenRefused,
} from "../../../src/features/identity/tokens.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { identityParts, settingsOf } from "../../harness/identity-parts.ts";
import { startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { openDatabase, withClock } from "../../stores/postgres/databases.ts";
import { begun } from "./begun.ts";

setDefaultTimeout(60_000);
const hour_ms = 3_600_000;
type Said = Record<string, unknown>;

let db: Database;
let drop: () => Promise<void>;
let issuer: TestIssuer;
let other: TestIssuer;
let parts: IdentityParts;
let organizationId: string;
let hasRefreshToken = true;

const rules = (name: string) => [
  { issuer: name, claim: "groups", has: "staff", organization: "acme", role: "member" as const },
  { issuer: name, claim: "groups", has: "ops", role: "viewer" as const },
  {
    ...{ issuer: name, claim: "pod", is: "ci", organization: "acme", role: "member" as const },
    ...{ kind: "service" as const, scopes: ["models:read" as const] },
  },
];

beforeAll(async () => {
  ({ db, drop } = await openDatabase());
  [issuer, other] = await Promise.all([startIssuer(), startIssuer()]);
  organizationId = idOf(Bun.randomUUIDv7(), "org_");
  const input = { id: organizationId, slug: "acme", name: "Acme", plan: null, actor: "cli:ann" };
  await administration(db).createOrganization(input);
});
afterAll(async () => {
  await Promise.all([issuer[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
  await drop();
});
beforeEach(() => {
  const issuers = [issuer, other].map((one) => ({
    ...{ issuer: one.issuer, client_id: "sluice", client_secret: "secret", audiences: ["sluice-api"] },
  }));
  parts = identityParts(db, () =>
    settingsOf([issuer, other], { issuers, rules: [...rules(issuer.issuer), ...rules(other.issuer)] }),
  );
  hasRefreshToken = true;
});

const asked: URLSearchParams[] = [];

function says(claims: Said = {}) {
  issuer.answer("/token", async (request) => {
    asked.push(new URLSearchParams(await request.text()));
    const payload = { sub: "ann", aud: "sluice", groups: ["staff"], sid: "s1", ...claims } as JWTPayload;
    const refresh = hasRefreshToken ? { refresh_token: `refresh-${asked.length}` } : {};
    return Response.json({ access_token: "a", token_type: "Bearer", id_token: await issuer.sign(payload), ...refresh });
  });
}

async function signedIn() {
  const { nonce, finish } = await begun(parts, "device", issuer.issuer);
  says({ nonce });
  const { secret } = await finish();
  const current = (await currentSession(parts, "device", secret))!;
  const device = await requestDevice(parts, { agent: "test/1", address: crypto.randomUUID() });
  if (device === "full") throw new Error("full");
  expect(await approveDevice(parts, current, { code: device.userCode, organizationId })).toBe(true);
  // The browser's session has ended: its tokens belong to the device now.
  expect(await currentSession(parts, "device", secret)).toBeNull();
  says();
  const tokens = await byDeviceCode(parts, device.deviceCode);
  return { accessToken: tokens.accessToken, refreshToken: tokens.refreshToken! };
}

const works = async (token: string) => {
  const found = await directory(db).credential(hashKey(token));
  return found !== null && found.key.revokedAt === null && found.secret.revokedAt === null;
};
const mayDo = (credential: Credential) => {
  const verdict = judge(credential, "00");
  return "principal" in verdict ? verdict.principal.key.scopes : verdict.refusal;
};
const error = async (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (cause: unknown) => (cause instanceof TokenRefused ? cause.error : String(cause)),
  );

describe("a refresh", () => {
  test("asks the issuer by its newest token each time", async () => {
    let { refreshToken } = await signedIn();
    for (let count = 0; count < 3; count++) {
      const given = `refresh-${asked.length}`;
      refreshToken = (await byRefreshToken(parts, refreshToken)).refreshToken!;
      expect(asked.at(-1)?.get("refresh_token")).toBe(given);
    }
  });

  test("consumes nothing while the issuer is away, and works afterwards", async () => {
    const { accessToken, refreshToken } = await signedIn();
    for (const status of [500, 503, 429]) {
      issuer.answer("/token", () => new Response("down", { status }));
      await expect(byRefreshToken(parts, refreshToken)).rejects.toBeInstanceOf(IssuerAway);
    }
    expect(await works(accessToken)).toBe(true);
    says();
    expect((await byRefreshToken(parts, refreshToken)).refreshToken).not.toBeNull();
  });

  test("ends the sign-in with the issuer's no, with the membership, and with an answer about somebody else", async () => {
    for (const answer of ["no", { groups: ["ops"] }, { sub: "bob" }] as const) {
      const { accessToken, refreshToken } = await signedIn();
      if (answer === "no") issuer.answer("/token", () => Response.json({ error: "invalid_grant" }, { status: 400 }));
      else says(answer);
      expect(await error(byRefreshToken(parts, refreshToken))).toBe("invalid_grant");
      says();
      expect(await error(byRefreshToken(parts, refreshToken))).toBe("invalid_grant");
      expect(await works(accessToken)).toBe(false);
    }
  });

  test("lasts a day where the issuer gives no refresh token", async () => {
    hasRefreshToken = false;
    const { refreshToken } = await signedIn();
    const next = await byRefreshToken(parts, refreshToken);
    await withClock(db, new Date(Date.now() + 24 * hour_ms), async () =>
      expect(await error(byRefreshToken(parts, next.refreshToken!))).toBe("invalid_grant"),
    );
  });

  test("follows the rules: scopes and models of now", async () => {
    const { refreshToken } = await signedIn();
    says({ groups: [], pod: "ci" });
    const next = await byRefreshToken(parts, refreshToken);
    expect(next.scopes).toEqual(["models:read"]);
    const found = await directory(db).credential(hashKey(next.accessToken));
    expect(found?.key.scopes).toEqual(["models:read"]);
  });
});

describe("an assertion of a workload", () => {
  const assertion = (claims: Said = {}, by = issuer) =>
    by.sign({ sub: "job-1", aud: "sluice-api", pod: "ci", ...claims } as JWTPayload);

  test("becomes an access token with the rule's rights, which never outlives it", async () => {
    const soon = Math.floor(Date.now() / 1000) + 120;
    const tokens = await byAssertion(parts, await assertion({ exp: soon }));
    expect(tokens).toMatchObject({ refreshToken: null, scopes: ["models:read"] });
    expect(tokens.lasts_s).toBeWithin(60, 121);
    const found = (await directory(db).credential(hashKey(tokens.accessToken)))!;
    expect(mayDo(found)).toEqual(["models:read"]);
    expect(found.secret.expiresAt!.getTime() / 1000).toBeLessThanOrEqual(soon + 1);
    expect((await parts.people.personOf(issuer.issuer, "job-1"))?.kind).toBe("service");
    const again = await byAssertion(parts, await assertion());
    expect(again.lasts_s).toBeLessThanOrEqual(3600);
    expect((await directory(db).credential(hashKey(again.accessToken)))?.key.id).toBe(found.key.id);
  });

  test("has at once what is given to its person by hand, and more than the rule says, too", async () => {
    const { accessToken } = await byAssertion(parts, await assertion({ sub: "job-4" }));
    const read = async () => (await directory(db).credential(hashKey(accessToken)))!;
    const { id } = (await parts.people.personOf(issuer.issuer, "job-4"))!;
    await administration(db).createTeam({
      ...{ id: idOf(Bun.randomUUIDv7(), "team_"), organizationId, name: "jobs", actor: "cli:ann" },
      limits: { ...noBudget, requestsPerMinute: 9 },
    });
    const membership = { organization: "acme", team: "jobs", role: "member", scopes, models: ["a/b"] } as const;
    await administration(db).giveMembership(id, membership, "cli:ann");
    expect(mayDo(await read())).toEqual([...scopes]);
    expect(await read()).toMatchObject({ rates: [{ limitedBy: "team" }] });
    // The person's next token gives the same membership, the one that an administrator gave, although the matching rule
    // has no team.
    const again = await byAssertion(parts, await assertion({ sub: "job-4" }));
    expect(again.scopes).toEqual([...scopes]);
    expect(await read()).toMatchObject({ rates: [{ limitedBy: "team" }] });
  });

  test("never outlives it, however long the way to the token was", async () => {
    let later_ms = 0;
    const slow = {
      ...parts,
      now_ms: () => Date.now() + later_ms,
      people: {
        ...parts.people,
        async tokenKey(of: Parameters<typeof parts.people.tokenKey>[0]) {
          later_ms += 100_000;
          return parts.people.tokenKey(of);
        },
      },
    };
    const soon = () => Math.floor(Date.now() / 1000) + 120;
    expect((await byAssertion(slow, await assertion({ exp: soon() }))).lasts_s).toBeWithin(10, 21);
    expect(await error(byAssertion(slow, await assertion({ exp: soon() })))).toBe("invalid_grant");
  });

  // Tokens with other defects are tested in callers.test.ts: both files test `verifiedAssertion`.
  const wrong: Record<string, () => Promise<string>> = {
    "that is an ID token": () => assertion({ aud: "sluice" }),
    "of nobody": () => assertion({ iss: "https://evil.example" }),
    "that no rule knows": () => assertion({ pod: "other" }),
    "without a subject": () => assertion({ sub: undefined }),
    "that is too long": () => assertion({ padding: "x".repeat(20_000) }),
    "that is no token": async () => "x",
  };
  test.each(Object.entries(wrong))("%s is refused in the same words, and nothing is stored", async (_, made) => {
    const people = async () => (await db.query("select 1 from person")).length;
    const before = await people();
    const text = await made();
    const thrown = await byAssertion(parts, text).catch((cause: unknown) => cause);
    expect(thrown).toBeInstanceOf(TokenRefused);
    expect((thrown as Error).message).toStartWith("This assertion is of no issuer");
    expect(await people()).toBe(before);
  });

  test("is of no use for one who is suspended", async () => {
    await byAssertion(parts, await assertion({ sub: "job-2" }));
    await db.query("update person set suspended_at = store_now() where subject = 'job-2'");
    expect(await error(byAssertion(parts, await assertion({ sub: "job-2" })))).toBe("invalid_grant");
  });

  test("is an outage while its issuer is away", async () => {
    other.away = true;
    await expect(assertion({}, other).then((text) => byAssertion(parts, text))).rejects.toBeInstanceOf(IssuerAway);
    other.away = false;
  });

  test("gives a token that ends when the issuer says that its subject has left", async () => {
    const { accessToken } = await byAssertion(parts, await assertion({ sub: "job-3" }));
    const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
    await leave(parts, await issuer.sign({ aud: "sluice", sub: "job-3", jti: "j3", events } as JWTPayload));
    expect(await works(accessToken)).toBe(false);
  });

  test("gives nothing if it was issued before its subject left or was erased; a later one does", async () => {
    const at = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
    const before = await assertion({ sub: "job-5", name: "Job", iat: at(-10) });
    await byAssertion(parts, before);
    const { id } = (await parts.people.personOf(issuer.issuer, "job-5"))!;
    await parts.people.endIssued(id, "service");
    expect(await error(byAssertion(parts, before))).toBe("invalid_grant");
    const later = await byAssertion(parts, await assertion({ sub: "job-5", iat: at(1) }));
    expect(await works(later.accessToken)).toBe(true);
    await administration(db).forgetPerson(id, "cli:ann");
    expect(await error(byAssertion(parts, before))).toBe("invalid_grant");
    expect(await parts.people.findPerson(id)).toMatchObject({ subject: null, name: null, memberships: [] });
  });

  test("gives a token that is revoked alone", async () => {
    const [one, two] = [await byAssertion(parts, await assertion()), await byAssertion(parts, await assertion())];
    expect(await revoke(parts, one.accessToken)).toBe(true);
    expect(await works(one.accessToken)).toBe(false);
    expect(await works(two.accessToken)).toBe(true);
  });
});
