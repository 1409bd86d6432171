// Sessions of browsers, sign-ins of devices, devices that wait for approval, and counted uses: when each of them ends,
// and which steps happen only once.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import { hashKey, key_random_bytes, newKey, secretOf } from "../../../src/core/auth/credential.ts";
import { judge } from "../../../src/core/auth/verdict.ts";
import { type KeyKind, scopes } from "../../../src/core/store/directory.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import type { BrowserSession } from "../../../src/features/identity/store/browser-sessions.ts";
import type { NewSignIn } from "../../../src/features/identity/store/sign-ins.ts";
import { isFirst } from "../../../src/features/identity/store/use-counts.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { browserSessions } from "../../../src/stores/postgres/browser-sessions.ts";
import { deviceRequests } from "../../../src/stores/postgres/device-requests.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { peopleAdministration } from "../../../src/stores/postgres/people-administration.ts";
import { signIns } from "../../../src/stores/postgres/sign-ins.ts";
import { useCounts } from "../../../src/stores/postgres/use-counts.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setLimits } from "../../harness/limits.ts";
import { newMember } from "../../harness/members.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";
import { addOrganization, addTeam } from "./made.ts";

setDefaultTimeout(60_000);
const hour_ms = 3_600_000;
const life = { idle_ms: 8 * hour_ms, whole_ms: 24 * hour_ms };
const uuid = () => Bun.randomUUIDv7();
const issuer = "https://login.example";
const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
const hash = () => random(32);
const secret = () => newKey(random(key_random_bytes), "slt_");

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  async function person() {
    const confirmed = await people(db).confirm({
      ...{ id: idOf(uuid(), "per_"), issuer, subject: uuid(), kind: "person", memberships: null },
    });
    return confirmed.id;
  }
  const organization = async () => (await addOrganization(db)).id;
  const now = async () => (await db.query<{ at: Date }>("select store_now() as at"))[0]!.at;
  const later = async (ms: number) => new Date((await now()).getTime() + ms);

  describe("a session of a browser", () => {
    const sessions = () => browserSessions(db);
    async function begun(fields: Partial<BrowserSession> = {}) {
      const session: BrowserSession = {
        ...{ hash: hash(), kind: "console", personId: await person(), issuer, issuerSession: "s1", tokens: null },
        ...fields,
      };
      await sessions().begin(session);
      return session;
    }
    const find = (session: BrowserSession) => sessions().find(session.hash, session.kind, life);

    test("is found by its hash, and only as what it is", async () => {
      const session = await begun();
      expect(await find(session)).toMatchObject({ personId: session.personId, issuerSession: "s1" });
      expect(await sessions().find(session.hash, "device", life)).toBeNull();
      expect(await sessions().find(hash(), "console", life)).toBeNull();
    });

    test("ends by its idleness, and by its age however much it is used", async () => {
      const session = await begun();
      for (const hours of [7, 14, 21, 23])
        await withClock(db, await later(hours * hour_ms), async () => expect(await find(session)).not.toBeNull());
      await withClock(db, await later(24 * hour_ms), async () => expect(await find(session)).toBeNull());
      const idle = await begun();
      await withClock(db, await later(8 * hour_ms), async () => {
        expect(await find(idle)).toBeNull();
        expect(await sessions().forget(life)).toBeGreaterThan(0);
      });
    });

    test("ends with the word of its issuer, and with its person", async () => {
      const personId = await person();
      const [one, other] = [await begun({ personId }), await begun({ personId, issuerSession: "s2" })];
      expect(await sessions().endAtIssuer({ issuer: "https://other.example", issuerSession: "s2" })).toBe(0);
      expect(await sessions().endAtIssuer({ issuer, issuerSession: "s2" })).toBe(1);
      expect(await find(other)).toBeNull();
      expect(await find(one)).not.toBeNull();
      await people(db).endIssued(personId, "service");
      expect(await find(one)).toBeNull();
      expect(await sessions().endAtIssuer({ personId })).toBe(1);
    });

    test("is nobody's who is suspended", async () => {
      const session = await begun();
      await db.query("update person set suspended_at = store_now() where id = $1", [bare(session.personId, "per_")]);
      expect(await find(session)).toBeNull();
    });

    test("is asked for by one node at a time", async () => {
      const session = await begun();
      const seen = new Date();
      const claims = await Promise.all([1, 2, 3].map(() => sessions().claim(session.hash, seen, 10_000)));
      expect(claims.filter(Boolean)).toHaveLength(1);
      await sessions().confirmed(session.hash, Uint8Array.of(1, 2));
      expect((await find(session))?.tokens).toEqual(Uint8Array.of(1, 2));
      // A node that read the session before this confirmation does not ask the issuer again.
      const before = new Date(seen.getTime() - 3_600_000);
      expect(await sessions().claim(session.hash, before, 10_000)).toBe(false);
      const { confirmedAt } = (await find(session))!;
      expect(await sessions().claim(session.hash, confirmedAt, 10_000)).toBe(true);
      await sessions().confirmed(session.hash);
      expect((await find(session))?.tokens).toEqual(Uint8Array.of(1, 2));
    });
  });

  describe("a sign-in", () => {
    const access = (text = secret(), lasts_ms = hour_ms) => ({ secret: secretOf(text), lasts_ms });
    async function begun(fields: Partial<NewSignIn> = {}) {
      const token = secret();
      const organizationId = fields.organizationId ?? (await organization());
      const input: NewSignIn = {
        ...{ keyId: idOf(uuid(), "key_"), personId: await newMember(db, uuid(), { organization: organizationId }) },
        ...{ organizationId, scopes, models: null, issuer, issuerSession: "d1", tokens: Uint8Array.of(9) },
        ...{ lasts_ms: null, agent: "test/1", address: "192.0.2.1", access: access(token), refreshHash: hash() },
        ...fields,
      };
      expect(await signIns(db).begin(input)).toBe("begun");
      return { ...input, token };
    }
    const credential = (text: string) => directory(db).credential(hashKey(text));
    const times = () => ({ claim: uuid(), claim_ms: 10_000, repeat_ms: 60_000 });
    const begin = (refreshHash: Uint8Array) => signIns(db).beginRefresh(refreshHash, times());
    async function refreshed(refreshHash: Uint8Array, fields = {}) {
      const found = await begin(refreshHash);
      if (found.is !== "begun") throw new Error(found.is);
      const [nextHash, text] = [hash(), secret()];
      const isDone = await signIns(db).completeRefresh({
        ...{ claim: found.claim, keyId: found.keyId, usedHash: refreshHash, nextHash, successor: Uint8Array.of(7) },
        ...{ access: access(text), tokens: undefined, rights: { scopes, models: null } },
        ...fields,
      });
      return { isDone, nextHash, text };
    }

    test("gives an access token that is a key until it ends", async () => {
      const signIn = await begun({ scopes: ["models:read"], models: ["a/b"] });
      const found = (await credential(signIn.token))!;
      expect(found.key).toMatchObject({ id: signIn.keyId, scopes: ["models:read"], models: ["a/b"] });
      expect(found.secret.expiresAt!.getTime() - found.readAt.getTime()).toBeWithin(hour_ms - 30_000, hour_ms + 1);
      const listed = async (of?: KeyKind) =>
        (await administration(db).pageKeys({ organizationId: signIn.organizationId, limit: 10, kind: of })).items;
      expect(await listed()).toEqual([]);
      expect(await listed("sign-in")).toMatchObject([
        { id: signIn.keyId, secrets: [{ prefix: signIn.token.slice(0, 8) }] },
      ]);
      expect(await signIns(db).end(signIn.keyId, "revoked")).toBe(true);
      expect(await signIns(db).end(signIn.keyId, "revoked")).toBe(false);
      expect((await credential(signIn.token))!.key.revokedAt).not.toBeNull();
      expect(await begin(signIn.refreshHash)).toEqual({ is: "unknown" });
    });

    test("takes no default limits of keys, and follows the membership to its team at once", async () => {
      const organizationId = await organization();
      const whole = { subject: "organization", id: organizationId, organizationId } as const;
      await setLimits(db, whole, { keys: { requestsPerMinute: 1 } });
      const limits = { ...noBudget, requestsPerMinute: 5 };
      const { id: teamId } = await addTeam(db, organizationId, { name: "research", limits });
      const signIn = await begun({ organizationId });
      expect((await credential(signIn.token))!.rates).toEqual([]);
      const give = (team: string | null) =>
        peopleAdministration(db).giveMembership(
          signIn.personId,
          { organization: organizationId, team, role: "member", scopes, models: null },
          "cli:ann",
        );
      await give("research");
      const ofTeam = [{ limitedBy: "team", id: teamId }] as const;
      expect((await credential(signIn.token))!.rates).toMatchObject(ofTeam);
      // Rights that were read before the membership changed do not move the sign-in back.
      const { isDone, text } = await refreshed(signIn.refreshHash, { rights: { scopes, models: ["a/b"] } });
      expect(isDone).toBe(true);
      expect((await credential(text))!.rates).toMatchObject(ofTeam);
      expect((await credential(text))!.key.models).toEqual(["a/b"]);
      await give(null);
      expect((await credential(text))!.rates).toEqual([]);
      expect(await begun({ organizationId, personId: signIn.personId })).toMatchObject({ organizationId });
    });

    test("may do what the membership says now, and not what it said when the token was issued", async () => {
      const { token } = await begun({ scopes: ["models:read"], models: ["a/b"] });
      expect(judge(await credential(token), "00")).toMatchObject({
        principal: { key: { scopes, models: null } },
      });
    });

    test("begins for members alone", async () => {
      const { access: _, ...known } = await begun();
      const input = { ...known, keyId: idOf(uuid(), "key_"), access: access(), refreshHash: hash() };
      expect(await signIns(db).begin({ ...input, organizationId: await organization() })).toBe("gone");
      expect(await signIns(db).begin({ ...input, personId: await person() })).toBe("gone");
    });

    test("answers a used refresh token with the same successor for a minute; then the family ends", async () => {
      const signIn = await begun();
      const { text, nextHash } = await refreshed(signIn.refreshHash);
      expect(await begin(signIn.refreshHash)).toEqual({
        ...{ is: "repeated", keyId: signIn.keyId, successor: Uint8Array.of(7) },
      });
      await withClock(db, await later(61_000), async () =>
        expect(await begin(signIn.refreshHash)).toEqual({ is: "reused" }),
      );
      expect(await begin(nextHash)).toEqual({ is: "unknown" });
      for (const token of [signIn.token, text]) expect((await credential(token))!.key.revokedAt).not.toBeNull();
    });

    test("completes a refresh with its own right alone", async () => {
      const { refreshHash, keyId } = await begun();
      expect((await begin(refreshHash)).is).toBe("begun");
      const answer = await signIns(db).completeRefresh({
        ...{ claim: uuid(), keyId, usedHash: refreshHash, nextHash: hash(), successor: Uint8Array.of(1) },
        ...{ access: access(), tokens: null, rights: { scopes, models: null } },
      });
      expect(answer).toBe(false);
    });

    test("that has ended by itself is expired in lists, and its refresh token is deleted 30 days later", async () => {
      const lasts_ms = 24 * hour_ms;
      const { keyId, refreshHash, organizationId } = await begun({ lasts_ms, tokens: null });
      const stays = await begun();
      const find = () => administration(db).findKey(keyId);
      const { state, endsAt, createdAt } = (await find())!;
      expect([state, endsAt!.getTime() - createdAt.getTime()]).toEqual(["active", lasts_ms]);
      await withClock(db, endsAt!, async () => {
        expect(await find()).toMatchObject({ state: "expired", endsAt });
        const active = await administration(db).pageKeys({
          organizationId,
          kind: "sign-in",
          state: "active",
          limit: 10,
        });
        expect(active.items).toEqual([]);
      });
      await withClock(db, await later(32 * lasts_ms), () => signIns(db).forget());
      expect(await signIns(db).ofToken(refreshHash)).toBeNull();
      expect(await signIns(db).ofToken(stays.refreshHash)).toBe(stays.keyId);
    });

    test("ends with the session at the issuer", async () => {
      const [one, other] = [await begun({ issuerSession: "gone" }), await begun({ issuerSession: "stays" })];
      expect(await signIns(db).endAtIssuer({ issuer, issuerSession: "gone" }, "logout")).toBe(1);
      expect((await credential(one.token))!.key.revokedAt).not.toBeNull();
      expect((await credential(other.token))!.key.revokedAt).toBeNull();
      expect(await signIns(db).endAtIssuer({ personId: other.personId }, "logout")).toBe(1);
      expect((await credential(other.token))!.key.revokedAt).not.toBeNull();
    });

    test("is known by each of its tokens, which are deleted a day after their end", async () => {
      const signIn = await begun();
      for (const each of [hashKey(signIn.token), signIn.refreshHash])
        expect(await signIns(db).ofToken(each)).toBe(signIn.keyId);
      expect(await signIns(db).ofToken(hash())).toBeNull();
      await withClock(db, await later(26 * hour_ms), async () => {
        expect(await signIns(db).forget()).toBeGreaterThan(0);
      });
      expect(await credential(signIn.token)).toBeNull();
    });
  });

  describe("a device that waits", () => {
    const limits = { of_address_max: 2, all_max: 1000 };
    const asked = (address = uuid()) => ({
      ...{ deviceHash: hash(), userHash: hash(), agent: "test/1", address, lasts_ms: 600_000, interval_s: 5 },
    });
    async function added(address?: string) {
      const request = asked(address);
      expect(await deviceRequests(db).add(request, limits)).toBe("added");
      return request;
    }
    const approval = async () => ({
      ...{ personId: await person(), organizationId: await organization(), issuerSession: "s1" },
      tokens: Uint8Array.of(3),
    });

    test("gets nothing once the session that approved it has ended at the issuer", async () => {
      const store = deviceRequests(db);
      const [one, whole, stays] = [await added(), await added(), await added()];
      const person = await approval();
      await store.approve(one.userHash, { ...person, issuerSession: "gone" });
      await store.approve(whole.userHash, person);
      await store.approve(stays.userHash, { ...(await approval()), issuerSession: "stays" });
      await browserSessions(db).endAtIssuer({ issuer: "https://other.example", issuerSession: "stays" });
      await browserSessions(db).endAtIssuer({ issuer, issuerSession: "gone" });
      expect(await store.poll(one.deviceHash)).toEqual({ is: "unknown" });
      await browserSessions(db).endAtIssuer({ personId: person.personId });
      expect(await store.poll(whole.deviceHash)).toEqual({ is: "unknown" });
      expect((await store.poll(stays.deviceHash)).is).toBe("approved");
    });

    test("has to wait longer if it asks too soon", async () => {
      const request = await added();
      const { poll } = deviceRequests(db);
      expect(await poll(request.deviceHash)).toEqual({ is: "pending" });
      expect(await poll(request.deviceHash)).toEqual({ is: "too_soon", interval_s: 10 });
      await withClock(db, await later(11_000), async () =>
        expect(await poll(request.deviceHash)).toEqual({ is: "pending" }),
      );
    });

    test("has ended after its time, for the one who approves too", async () => {
      const request = await added();
      await withClock(db, await later(600_000), async () => {
        const store = deviceRequests(db);
        expect(await store.poll(request.deviceHash)).toEqual({ is: "unknown" });
        expect(await store.approve(request.userHash, await approval())).toBe(false);
        expect(await store.forget()).toBeGreaterThan(0);
      });
    });

    test("is one of few from its address, and of all", async () => {
      const address = uuid();
      await added(address);
      await added(address);
      expect(await deviceRequests(db).add(asked(address), limits)).toBe("full");
      expect(await deviceRequests(db).add(asked(), { ...limits, all_max: 1 })).toBe("full");
    });
  });

  test("uses are counted in a span that begins with the first one", async () => {
    const counts = useCounts(db);
    const value = uuid();
    const all = await Promise.all([1, 2, 3].map(() => counts.count("a code", value, 1000)));
    expect(all.sort()).toEqual([1, 2, 3]);
    expect(await isFirst(counts, "another kind", value, 1000)).toBe(true);
    expect(await counts.counted("a code", value)).toBe(3);
    await counts.uncount("a code", value);
    expect(await counts.counted("a code", value)).toBe(2);
    await withClock(db, await later(1000), async () => {
      expect(await counts.counted("a code", value)).toBe(0);
      expect(await counts.forget()).toBeGreaterThan(0);
      expect(await isFirst(counts, "a code", value, 1000)).toBe(true);
    });
  });
});
