// People who reached a limit ask for a higher one, and administrators decide (docs/limits.md, Asking for more): who may
// do so, which limits an approval sets, and attacks with forged, repeated, foreign and expired requests.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { apart, codeOf, worldForTests } from "./own-world.ts";
import { actingAs, personCaller } from "./world.ts";

setDefaultTimeout(60_000);
const acme = { organization: "acme" };
const day_ms = 86_400_000;
const tomorrow = new Date(Date.now() + day_ms).toISOString();
const world = worldForTests(async ({ manage, teams }) => {
  await manage.updateOrganizationLimits({ ...acme, own: { month: "5000" } });
  await manage.updateOrganizationLimits({ ...acme, members: { week: "10", requestsPerMinute: 60 } });
  await manage.updateTeamLimits({ team: teams.research, own: { month: "100" } });
  await manage.setNotices({ ...acme, name: "webhook", url: "https://hooks.example.com/sluice" });
});

const tried = (act: Parameters<typeof apart>[1]) => apart(world, act);
const message = "The release on Friday";
const ofWeek = { limit: "week", amount: "50", message } as const;
const usd = (amount: number) => ({ amount: amount.toFixed(9), currency: "USD" });
const weekOf = async (manage: Management) =>
  (await manage.findPersonLimits({ person: world.people.ann, ...acme })).inForce.week;
const past = (db: Database, id: string) =>
  db.query(
    "update limit_request set created_at = created_at - interval '8 days', expires_at = expires_at - interval '8 days' where id = $1",
    [id.slice("lreq_".length)],
  );

/** Stores the record of a refused request with one of Ann's keys, as a node does. Returns the ID of the request. */
async function refused(db: Database, met: object | null): Promise<string> {
  const requestId = idOf(Bun.randomUUIDv7(), "req_");
  await refusedRequests(db).keep([
    {
      ...{ requestId, organizationId: world.acme, keyId: world.keys.key, operation: "chat.completions", model: null },
      ...{ stream: null, errorCode: "usage_limit_reached", message: "The limit is reached.", age_ms: 0 },
      ...(met && { limit: { limit: 10_000_000_000, used: 10_000_000_000, needed: 1_000, ...met } as never }),
    },
  ]);
  return requestId;
}

describe("somebody who met a limit", () => {
  test("asks for the one that the refused request met", () =>
    tried(async ({ ann }, db) => {
      const request = await refused(db, { limitedBy: "person", name: "week" });
      const asked = await ann.requestLimit({ request, message });
      expect(asked).toMatchObject({
        subject: "person",
        limit: "week",
        models: null,
        state: "open",
        requestId: request,
      });
      expect(asked).toMatchObject({ subjectId: world.people.ann, value: usd(10), asked: null, organization: "acme" });
      const lasts_ms = asked.expiresAt.getTime() - asked.createdAt.getTime();
      expect(lasts_ms).toBe(7 * day_ms);
      const ofTeam = await refused(db, { limitedBy: "team", name: "month" });
      expect(await ann.requestLimit({ request: ofTeam, message })).toMatchObject({
        ...{ subject: "team", subjectId: world.teams.research, name: "research", value: usd(100) },
      });
    }));

  test("names a limit instead, and reads what was asked", () =>
    tried(async ({ ann, bob }) => {
      const { id } = await ann.requestLimit({ limit: "requests_per_minute", amount: "120", message });
      expect(await ann.findLimitRequest({ id })).toMatchObject({ limit: "requests_per_minute", value: 60, asked: 120 });
      expect((await ann.pageLimitRequests()).data.map((one) => one.id)).toEqual([id]);
      expect((await bob.pageLimitRequests()).data).toEqual([]);
      expect(await codeOf(bob.findLimitRequest({ id }))).toBe("resource_not_found");
    }));

  test("has three open at a time, and one for each limit; a withdrawn or expired one makes room", () =>
    tried(async ({ ann }, db) => {
      const first = await ann.requestLimit(ofWeek);
      expect(await codeOf(ann.requestLimit(ofWeek))).toBe("already_exists");
      await ann.requestLimit({ limit: "requests_per_minute", message });
      const third = await ann.requestLimit({ limit: "month", of: "team", message });
      const ofAll = { limit: "month", of: "organization", message } as const;
      expect(await codeOf(ann.requestLimit(ofAll))).toBe("wrong_state");
      await ann.withdrawLimitRequest({ id: third.id });
      await ann.requestLimit(ofAll);
      await past(db, first.id);
      expect(await ann.findLimitRequest({ id: first.id })).toMatchObject({ state: "expired", decidedAt: null });
      await ann.requestLimit(ofWeek);
      const states = (await ann.pageLimitRequests()).data.map(({ state }) => state);
      expect(states.toReversed()).toEqual(["expired", "open", "withdrawn", "open", "open"]);
    }));

  test("are made twenty times a day, however many are withdrawn, since each is told to others", () =>
    tried(async ({ ann }, db) => {
      for (let made = 0; made < 20; made++) {
        const { id } = await ann.requestLimit(ofWeek);
        await ann.withdrawLimitRequest({ id });
      }
      expect(await codeOf(ann.requestLimit(ofWeek))).toBe("wrong_state");
      await db.exec("update limit_request set created_at = created_at - interval '1 day'");
      await ann.requestLimit(ofWeek);
    }));

  test("are listed with the newest first, part by part, so that open ones come before those decided long ago", () =>
    tried(async ({ ann }) => {
      const ids: string[] = [];
      for (let n = 0; n < 3; n++) {
        const { id } = await ann.requestLimit(ofWeek);
        ids.unshift(id);
        if (n < 2) await ann.withdrawLimitRequest({ id });
      }
      const first = await ann.pageLimitRequests({ limit: 2 });
      expect(first.data.map(({ id, state }) => [id, state])).toEqual([
        [ids[0]!, "open"],
        [ids[1]!, "withdrawn"],
      ]);
      const second = await ann.pageLimitRequests({ limit: 2, cursor: first.nextCursor! });
      expect([second.data.map(({ id }) => id), second.nextCursor]).toEqual([[ids[2]!], null]);
    }));

  test.each([
    ["no limit and no request", { message }],
    ["both", { limit: "week", request: `req_${"0".repeat(32)}`, message }],
    ["no more than there is", { limit: "week", amount: "10", message }],
    ["a message of two lines", { limit: "week", message: "one\ntwo" }],
    ["a message that is too long", { limit: "week", message: "x".repeat(501) }],
    ["no number", { limit: "requests_per_minute", amount: "1.5", message }],
  ])("is refused with %s", (_, input) =>
    tried(async ({ ann }) => {
      expect(await codeOf(ann.requestLimit(input as never))).toMatch(/^(invalid_value|missing_field)$/);
    }),
  );

  test("cannot ask for what is not limited, or by a request that met no limit", () =>
    tried(async ({ ann, bob }, db) => {
      expect(await codeOf(ann.requestLimit({ limit: "session", message }))).toBe("wrong_state");
      expect(await codeOf(ann.requestLimit({ request: await refused(db, null), message }))).toBe("wrong_state");
      const extra = await refused(db, { limitedBy: "organization", name: "extra" });
      expect(await codeOf(ann.requestLimit({ request: extra, message }))).toBe("wrong_state");
      expect(await codeOf(bob.requestLimit({ limit: "month", of: "team", message }))).toBe("wrong_state");
    }));
});

describe("an approval", () => {
  test("raises the limit until an instant, is in the audit log, and says who decided", () =>
    tried(async ({ ann, lea, root }) => {
      const { id } = await ann.requestLimit(ofWeek);
      const approved = await lea.approveLimitRequest({ id, until: tomorrow });
      expect(approved).toMatchObject({ state: "approved", granted: usd(50), decidedBy: `person:${world.people.lea}` });
      expect(await weekOf(root)).toEqual({ limit: usd(50), from: "raise" });
      const { raises } = await root.findPersonLimits({ person: world.people.ann, ...acme });
      expect(raises).toMatchObject([{ until: new Date(tomorrow), setBy: `person:${world.people.lea}` }]);
      const [entry] = (await root.pageAudit({ ...acme, limit: 1 })).data;
      expect(entry).toMatchObject({ action: "person.limits", actor: `person:${world.people.lea}` });
      expect(entry!.details).toMatchObject({ limit_request: id });
      expect(JSON.stringify((await root.pageAudit({ ...acme, limit: 50 })).data)).not.toContain(message);
    }));

  test("may be for another amount, and keeps what else is raised", () =>
    tried(async ({ ann, lea, root }) => {
      const raise = { limits: { requestsPerMinute: 90 }, until: tomorrow };
      await root.updatePersonLimits({ person: world.people.ann, ...acme, raise });
      const { id } = await ann.requestLimit({ limit: "week", message });
      expect(await codeOf(lea.approveLimitRequest({ id, until: tomorrow }))).toBe("invalid_value");
      await lea.approveLimitRequest({ id, amount: 20, until: tomorrow });
      const { inForce } = await root.findPersonLimits({ person: world.people.ann, ...acme });
      expect([inForce.week.limit, inForce.requestsPerMinute.limit]).toEqual([usd(20), 90]);
    }));

  test("never lowers what somebody else was granted meanwhile, nor ends it earlier", () =>
    tried(async ({ ann, lea, operator, root }) => {
      const inDays = (days: number) => new Date(Date.now() + days * day_ms).toISOString();
      const ofTeam = { limit: "month", of: "team", message } as const;
      const less = await ann.requestLimit({ ...ofTeam, amount: "120" });
      const more = await lea.requestLimit({ ...ofTeam, amount: "150" });
      await operator.approveLimitRequest({ id: more.id, until: inDays(20) });
      for (const given of [
        { until: inDays(30) },
        { amount: "150", until: inDays(30) },
        { amount: "200", until: inDays(7) },
      ])
        expect(await codeOf(operator.approveLimitRequest({ id: less.id, ...given }))).toBe("wrong_state");
      const month = async () => (await root.findTeamLimits({ team: world.teams.research })).inForce.month.limit;
      expect(await month()).toEqual(usd(150));
      expect(await ann.findLimitRequest({ id: less.id })).toMatchObject({ state: "open" });
      await operator.approveLimitRequest({ id: less.id, amount: "200", until: inDays(30) });
      expect(await month()).toEqual(usd(200));
    }));

  test("is not refused for what else is raised, which the organization may no longer use", () =>
    tried(async ({ ann, lea, root }) => {
      const raise = (amount: string) => ({ limits: { week: amount }, until: tomorrow });
      await root.updateOrganizationLimits({ ...acme, own: { week: "100" } });
      await root.updateOrganizationLimits({ ...acme, raise: raise("500") });
      await root.updatePersonLimits({ person: world.people.ann, ...acme, raise: raise("300") });
      await root.updateOrganizationLimits({ ...acme, raise: null });
      const { id } = await ann.requestLimit({ limit: "requests_per_minute", amount: "120", message });
      await lea.approveLimitRequest({ id, until: tomorrow });
      const { raises } = await root.findPersonLimits({ person: world.people.ann, ...acme });
      expect(raises).toMatchObject([{ limits: { week: usd(300), requestsPerMinute: 120 } }]);
    }));

  test("of an organization's limit is for the role admin", () =>
    tried(async ({ ann, lea, ada, root }) => {
      const { id } = await ann.requestLimit({ limit: "month", of: "organization", amount: "6000", message });
      expect(await codeOf(lea.approveLimitRequest({ id, until: tomorrow }))).toBe("missing_role");
      await ada.approveLimitRequest({ id, until: tomorrow });
      expect((await root.findOrganizationLimits(acme)).inForce.month).toEqual({ limit: usd(6000), from: "raise" });
    }));

  test("is never one's own, and never raises what counts for who decides", () =>
    tried(async ({ ann, lea, operator }, db) => {
      const own = await lea.requestLimit({ limit: "week", amount: "50", message });
      expect(await codeOf(lea.approveLimitRequest({ id: own.id, until: tomorrow }))).toBe("wrong_state");
      // Lea is in the team, too, so the request would raise a limit of hers, and she cannot decide it.
      const ofTeam = await ann.requestLimit({ limit: "month", of: "team", amount: "200", message });
      expect(await codeOf(lea.approveLimitRequest({ id: ofTeam.id, until: tomorrow }))).toBe("wrong_state");
      // Even with a role for the whole service, a person cannot decide on her own request.
      const asAdmin = actingAs(db, personCaller(world.people.lea, "admin", null));
      expect(await codeOf(asAdmin.approveLimitRequest({ id: own.id, until: tomorrow }))).toBe("wrong_state");
      for (const { id } of [own, ofTeam])
        expect(await operator.approveLimitRequest({ id, until: tomorrow })).toMatchObject({ state: "approved" });
    }));

  test("keeps the rules of a raise, and a refused one leaves the request open", () =>
    tried(async ({ ann, lea }) => {
      const { id } = await ann.requestLimit(ofWeek);
      const yesterday = new Date(Date.now() - day_ms).toISOString();
      expect(await codeOf(lea.approveLimitRequest({ id, until: yesterday }))).toBe("invalid_value");
      expect(await codeOf(lea.approveLimitRequest({ id, amount: "5", until: tomorrow }))).toBe("invalid_value");
      expect(await ann.findLimitRequest({ id })).toMatchObject({ state: "open" });
    }));
});

describe("attacks", () => {
  test("a forged or foreign request does not exist", () =>
    tried(async ({ ann, bob, gus }, db) => {
      const { id } = await ann.requestLimit(ofWeek);
      const forged = `lreq_${"f".repeat(32)}`;
      for (const [who, named] of [
        [gus, id],
        [bob, id],
        [ann, forged],
      ] as const) {
        expect(await codeOf(who.findLimitRequest({ id: named }))).toBe("resource_not_found");
        expect(await codeOf(who.withdrawLimitRequest({ id: named }))).toBe("resource_not_found");
      }
      expect(await codeOf(gus.approveLimitRequest({ id, until: tomorrow }))).toBe("resource_not_found");
      expect(await codeOf(gus.declineLimitRequest({ id, reason: "no" }))).toBe("resource_not_found");
      expect((await gus.pageLimitRequests()).data).toEqual([]);
      expect(await codeOf(gus.pageLimitRequests(acme))).toBe("resource_not_found");
      // Nobody can ask for a higher limit by naming another person's refused request, or another person's key.
      const request = await refused(db, { limitedBy: "person", name: "week" });
      expect(await codeOf(bob.requestLimit({ request, message }))).toBe("resource_not_found");
      expect(await codeOf(gus.requestLimit({ request, message }))).toBe("resource_not_found");
      const ofKey = { limit: "week", of: "key", key: world.keys.key, message } as const;
      expect(await codeOf(bob.requestLimit(ofKey))).toBe("resource_not_found");
    }));

  test("a request is decided once", () =>
    tried(async ({ ann, lea, ada }) => {
      const { id } = await ann.requestLimit(ofWeek);
      await lea.declineLimitRequest({ id, reason: "not this month" });
      expect(await ann.findLimitRequest({ id })).toMatchObject({ state: "declined", reason: "not this month" });
      for (const again of [
        () => lea.approveLimitRequest({ id, until: tomorrow }),
        () => ada.declineLimitRequest({ id, reason: "no" }),
        () => ann.withdrawLimitRequest({ id }),
      ])
        expect(await codeOf(again())).toBe("wrong_state");
    }));

  test("an expired request is decided no more", () =>
    tried(async ({ ann, lea, root }, db) => {
      const { id } = await ann.requestLimit(ofWeek);
      await past(db, id);
      expect(await codeOf(lea.approveLimitRequest({ id, until: tomorrow }))).toBe("wrong_state");
      expect(await codeOf(lea.declineLimitRequest({ id, reason: "late" }))).toBe("wrong_state");
      expect(await weekOf(root)).toEqual({ limit: usd(10), from: "organization" });
      expect((await lea.pageLimitRequests({ state: "open" })).data).toEqual([]);
    }));

  test("a key that is revoked meanwhile gets no raise", () =>
    tried(async ({ ann, lea, root }) => {
      await root.updateKeyLimits({ id: world.keys.key, own: { week: "5" } });
      const { id } = await ann.requestLimit({ limit: "week", of: "key", key: world.keys.key, amount: "8", message });
      await root.revokeKey({ id: world.keys.key });
      expect(await codeOf(lea.approveLimitRequest({ id, until: tomorrow }))).toBe("wrong_state");
    }));
});

test("the organization's webhook hears of it once, with a link that decides nothing", () =>
  tried(async ({ ann, lea }, db) => {
    const { id } = await ann.requestLimit(ofWeek);
    await lea.declineLimitRequest({ id, reason: "not this month" });
    const rows = await db.query<{ details: Record<string, unknown> }>(
      "select details from notice where kind = 'limit.requested'",
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]!.details).toMatchObject({
      ...{ limit_request_id: id, person: "ann", subject: "person", limit: "week", value: usd(10), asked: usd(50) },
      ...{ message, console_url: expect.stringMatching(new RegExp(`/limit-requests/${id}$`)) },
    });
  }));

test("what somebody wrote goes with personal data", () =>
  tried(async ({ ann, root }) => {
    const { id } = await ann.requestLimit(ofWeek);
    await root.forgetPerson({ person: world.people.ann });
    expect(await codeOf(root.findLimitRequest({ id }))).toBe("resource_not_found");
  }));
