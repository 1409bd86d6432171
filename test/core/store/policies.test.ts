// Organizations that have policies for their keys, are renamed, keep no content, or are closed: on both kinds of database.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Organization, Policies } from "../../../src/admin/store/organization.ts";
import { judge } from "../../../src/core/auth/verdict.ts";
import { useNoted_ms } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { noticeQueue } from "../../../src/stores/postgres/notices.ts";
import { operators } from "../../../src/stores/postgres/operators.ts";
import { forgetClosed } from "../../../src/stores/postgres/organization-life.ts";
import { keptResponses } from "../../../src/stores/postgres/responses.ts";
import { databaseKinds, holds } from "../../harness/depth.ts";
import { findHook, setHook } from "../../harness/destinations.ts";
import { setLimits } from "../../harness/limits.ts";
import { databaseForTests, lockAwaited, openDatabase, withClock } from "../../stores/postgres/databases.ts";
import { addKey, addOrganization, addTeam } from "./made.ts";
import { newSecret, unrestricted } from "./new-key.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(120_000);

const day_ms = 86_400_000;
const actor = "cli:ann";

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  let store: ReturnType<typeof directory>;
  let admin: ReturnType<typeof administration>;
  beforeAll(() => {
    store = directory(db);
    admin = administration(db);
  });

  const newId = (prefix: "org_" | "key_") => idOf(Bun.randomUUIDv7(), prefix);
  const organization = (slug?: string) => addOrganization(db, { plan: "pro", ...(slug && { slug }) });
  const key = (owner: Organization, secret = newSecret(), expiresAt: Date | null = null) =>
    addKey(db, owner.id, { secret, expiresAt });
  /** Asks for a key, which may be refused. */
  const createKey = (owner: Organization) =>
    admin.createKey({
      ...{ ...unrestricted, id: newId("key_"), organizationId: owner.id, name: "app", scopes: ["inference:create"] },
      ...{ secret: newSecret(), actor },
    });
  const changed = (answer: Awaited<ReturnType<typeof admin.setPolicies>> | "slug_taken"): Organization => {
    if (answer === null || typeof answer === "string" || "stale" in answer) throw new Error(JSON.stringify(answer));
    return answer;
  };
  const policies = async (owner: Organization, wanted: Partial<Policies>) =>
    changed(await admin.setPolicies(owner.id, wanted, actor));

  const at = <T>(instant: Date, work: () => Promise<T>): Promise<T> => withClock(db, instant, work);

  describe("policies", () => {
    test("are off until they are set, are changed one by one, and written down with what was before", async () => {
      const owner = await organization();
      expect(owner).toMatchObject({ keyLifetimeMaxDays: null, keyUnusedMaxDays: null, keepsContent: true });
      expect(await policies(owner, { keyLifetimeMaxDays: 90 })).toMatchObject({ keyLifetimeMaxDays: 90, version: 2 });
      const both = await policies(owner, { keyUnusedMaxDays: 30, keyLifetimeMaxDays: 90 });
      expect(both).toMatchObject({ keyLifetimeMaxDays: 90, keyUnusedMaxDays: 30, version: 3 });
      expect(await policies(owner, { keyUnusedMaxDays: 30 })).toEqual(both);
      expect(await admin.setPolicies(owner.id, { keyUnusedMaxDays: 9 }, actor, 2)).toEqual({ stale: both });
      await policies(owner, { keyUnusedMaxDays: null });
      const entries = await admin.listAudit({ organizationId: owner.id, action: "organization.policies", limit: 9 });
      expect(entries.map(({ details }) => details)).toEqual([
        { key_unused_max_days: null, before: { key_unused_max_days: 30 } },
        { key_unused_max_days: 30, before: { key_unused_max_days: null } },
        { key_lifetime_max_days: 90, before: { key_lifetime_max_days: null } },
      ]);
    });

    test("end a key to the millisecond, and give it back when they are lifted", async () => {
      const owner = await organization();
      const secret = newSecret();
      const made = await key(owner, secret);
      const judged = async (instant: Date) => judge(await at(instant, () => store.credential(secret.hash)), "ab");
      const listed = async (instant: Date) => (await at(instant, () => admin.findKey(made.id)))?.state;
      const after = (ms: number) => new Date(made.createdAt.getTime() + ms);
      await policies(owner, { keyLifetimeMaxDays: 90, keyUnusedMaxDays: 30 });
      const unused_ms = 30 * day_ms + useNoted_ms;
      expect((await admin.findKey(made.id))?.endsAt).toEqual(after(unused_ms));
      for (const [ms, refusal, state] of [
        [unused_ms - 1, undefined, "active"],
        [unused_ms, "unused", "unused"],
        [90 * day_ms, "too_old", "expired"],
      ] as const) {
        const verdict = await judged(after(ms));
        expect([ms, "refusal" in verdict ? verdict.refusal : undefined]).toEqual([ms, refusal]);
        expect([ms, await listed(after(ms))]).toEqual([ms, state]);
      }
      // A use of the key extends its life from the instant of the use, but not beyond the longest lifetime.
      await at(after(80 * day_ms), () => store.touch(new Map([[made.id, "192.0.2.7"]])));
      expect(await listed(after(90 * day_ms - 1))).toBe("active");
      expect(await listed(after(90 * day_ms))).toBe("expired");
      await policies(owner, { keyLifetimeMaxDays: null });
      expect(await judged(after(90 * day_ms))).toHaveProperty("principal");
    });

    test("a rotation begins anew: a new secret has its own lifetime, and a key that was unused lives", async () => {
      const owner = await organization();
      await policies(owner, { keyLifetimeMaxDays: 90, keyUnusedMaxDays: 30 });
      const [old, fresh] = [newSecret(), newSecret()];
      const made = await key(owner, old);
      const later = new Date(made.createdAt.getTime() + 100 * day_ms);
      await at(later, async () => {
        expect((await admin.findKey(made.id))?.state).toBe("expired");
        await admin.rotateKey({ id: made.id, secret: fresh, graceEndsAt: null, actor });
        expect((await admin.findKey(made.id))?.state).toBe("active");
        expect(judge(await store.credential(old.hash), "ab")).toMatchObject({ refusal: "too_old" });
        expect(judge(await store.credential(fresh.hash), "ab")).toHaveProperty("principal");
      });
    });

    test("a list and a look-up say the same of every key, whatever its dates, its use and its policies", async () => {
      const owner = await organization();
      const hours = fc.integer({ min: 0, max: 24 * 12 });
      const limit = fc.option(fc.integer({ min: 1, max: 6 }));
      const life = fc.record({
        ...{ expires: fc.option(hours), used: fc.option(hours), rotated: fc.option(hours) },
        ...{ keyLifetimeMaxDays: limit, keyUnusedMaxDays: limit, looked: hours },
      });
      const start = new Date("2030-03-30T00:00:00.000Z").getTime();
      const instant = (hour: number) => new Date(start + hour * 3_600_000);
      await holds(
        fc.asyncProperty(life, async ({ expires, used, rotated, looked, ...wanted }) => {
          await policies(owner, wanted);
          const [first, second] = [newSecret(), newSecret()];
          const expiresAt = expires === null ? null : instant(expires);
          const { id } = await at(instant(0), () => key(owner, first, expiresAt));
          const rotate = () => admin.rotateKey({ id, secret: second, graceEndsAt: null, actor });
          if (rotated !== null) await at(instant(rotated), rotate);
          if (used !== null) await at(instant(used), () => store.touch(new Map([[id, ""]])));
          await at(instant(looked), async () => {
            const made = rotated ?? 0;
            const old = wanted.keyLifetimeMaxDays !== null && looked >= made + wanted.keyLifetimeMaxDays * 24;
            const lastUse = Math.max(used ?? 0, made);
            const idle = wanted.keyUnusedMaxDays !== null && looked >= lastUse + wanted.keyUnusedMaxDays * 24 + 1;
            const isOver = (expires !== null && looked >= expires) || old;
            const state = isOver ? "expired" : idle ? "unused" : "active";
            const found = (await admin.findKey(id))!;
            expect(found.state).toBe(state);
            const page = await admin.pageKeys({ organizationId: owner.id, limit: 1000, state });
            expect(page.items.map((one) => one.id)).toContain(id);
            const verdict = judge(await store.credential((rotated === null ? first : second).hash), "ab");
            expect("principal" in verdict).toBe(state === "active");
            expect(found.endsAt === null || found.endsAt > instant(looked)).toBe(state === "active");
          });
        }),
        25,
      );
    });

    test("a key that is about to be too old gets a notice, as one that is about to expire", async () => {
      const owner = await organization();
      await policies(owner, { keyLifetimeMaxDays: 10 });
      const hook = { url: "https://example.test/", shares: [], keyExpiryDays: 14 };
      await setHook(admin, owner.id, hook);
      const made = await key(owner);
      await noticeQueue(db).look(() => []);
      const rows = await db.query<{ details: Record<string, unknown> }>(
        `select n.details from notice n join notice_destination d on d.id = n.destination_id
         where d.organization_id = $1 and n.kind = 'key.expiring'`,
        [owner.id.slice(4)],
      );
      expect(rows).toHaveLength(1);
      expect(rows[0]!.details).toMatchObject({ key_id: made.id });
      expect(new Date(rows[0]!.details.expires_at as string)).toEqual(new Date(made.createdAt.getTime() + 10 * day_ms));
    });
  });

  describe("a change of a key", () => {
    test("is refused where somebody changed the key since, and use is no change", async () => {
      const made = await key(await organization());
      expect(made.version).toBe(1);
      await store.touch(new Map([[made.id, "192.0.2.7"]]));
      const one = await admin.updateKey({ id: made.id, actor, version: 1 }, () => ({ owner: "ann" }));
      expect(one).toMatchObject({ owner: "ann", version: 2 });
      expect(await admin.updateKey({ id: made.id, actor, version: 1 }, () => ({ owner: "bob" }))).toMatchObject({
        stale: { owner: "ann" },
      });
      const subject = { subject: "key", id: made.id, organizationId: made.organizationId } as const;
      const own = { ...noBudget, week: 7 };
      expect(await admin.updateLimits(subject, { actor, version: 1 }, () => ({ own }))).toMatchObject({
        stale: { own: noBudget },
      });
      expect(await admin.updateLimits(subject, { actor, version: 2 }, () => ({ own }))).toMatchObject({
        own: { week: 7 },
      });
      await admin.rotateKey({ id: made.id, secret: newSecret(), graceEndsAt: null, actor });
      await admin.revokeKey({ id: made.id, old: true, actor });
      await admin.revokeKey({ id: made.id, old: false, actor });
      await admin.revokeKey({ id: made.id, old: false, actor });
      expect((await admin.findKey(made.id))?.version).toBe(6);
    });

    test("with the same team, and the same limits, changes nothing, and nothing is written", async () => {
      const made = await key(await organization());
      const { number } = await admin.auditHead();
      const same = await admin.updateKey({ id: made.id, actor }, () => ({ teamId: null }));
      expect(same).toEqual(made);
      const subject = { subject: "key", id: made.id, organizationId: made.organizationId } as const;
      await admin.updateLimits(subject, { actor }, () => ({ own: { ...noBudget } }));
      expect((await admin.auditHead()).number).toBe(number);
      expect((await admin.findKey(made.id))?.version).toBe(1);
    });
  });

  describe("a rename", () => {
    const word = () => `o${newId("org_").slice(-12)}`;

    test("keeps the ID and the keys; the old slug names nobody, and is no other's, also when two ask at once", async () => {
      const [old, fresh] = [word(), word()];
      const owner = await organization(old);
      const secret = newSecret();
      await key(owner, secret);
      const renamed = changed(await admin.renameOrganization(owner.id, { slug: fresh, name: "Acme EU" }, actor, 1));
      expect(renamed).toMatchObject({ id: owner.id, slug: fresh, formerSlugs: [old], name: "Acme EU", version: 2 });
      expect((await store.credential(secret.hash))?.organization).toMatchObject({ id: owner.id, slug: fresh });
      expect(await admin.findOrganization(old)).toBeNull();
      expect(await admin.formerOwner(old)).toEqual(renamed);
      const ask = () => admin.createOrganization({ id: newId("org_"), slug: old, name: "x", plan: "pro", actor });
      expect(await ask()).toBe("slug_taken");
      const other = await organization();
      expect(await admin.renameOrganization(other.id, { slug: old }, actor)).toBe("slug_taken");
      expect(await admin.renameOrganization(other.id, { slug: fresh }, actor)).toBe("slug_taken");
      expect((await admin.findOrganization(other.id))?.version).toBe(1);
      // The organization may take its own former slug again.
      const back = changed(await admin.renameOrganization(owner.id, { slug: old }, actor));
      expect(back).toMatchObject({ slug: old, formerSlugs: [fresh] });
      const [entry] = await admin.listAudit({ organizationId: owner.id, limit: 1 });
      expect(entry).toMatchObject({
        action: "organization.rename",
        details: { slug: old, before: { slug: fresh, name: "Acme EU" } },
      });
      const { number } = await admin.auditHead();
      expect(await admin.renameOrganization(owner.id, { slug: old }, actor)).toEqual(back);
      expect((await admin.auditHead()).number).toBe(number);
    });

    test("of two that want one slug at the same moment, or one that is being given up, one gets it at most", async () => {
      const slug = word();
      const [one, two] = [await organization(), await organization()];
      const given = await organization(word());
      const answers = await Promise.all([
        admin.renameOrganization(one.id, { slug }, actor),
        admin.renameOrganization(two.id, { slug }, actor),
        admin.createOrganization({ id: newId("org_"), slug, name: "x", plan: "pro", actor }),
      ]);
      expect(answers.filter((answer) => answer === "slug_taken")).toHaveLength(2);
      const [, made] = await Promise.all([
        admin.renameOrganization(given.id, { slug: word() }, actor),
        admin.createOrganization({ id: newId("org_"), slug: given.slug, name: "x", plan: "pro", actor }),
      ]);
      expect(made).toBe("slug_taken");
      expect(await admin.findOrganization(given.slug)).toBeNull();
    });
  });

  describe("an organization that keeps no content", () => {
    const by = (organizationId: string) => ({ organizationId, keyId: idOf(Bun.randomUUIDv7(), "key_") });
    const every = (organizationId: string) => ({ organizationId, personId: null });
    const kept = () => keptResponses(db, { kept_days: () => 30 });
    const response = () => ({
      ...{ id: idOf(Bun.randomUUIDv7(), "resp_"), previousId: null },
      ...{ input: "[]", output: "[]", response: "{}" },
    });

    test("loses what is stored, and keeps nothing more, also of what is just being stored", async () => {
      const owner = await organization();
      const responses = Array.from({ length: 40 }, response);
      for (const one of responses.slice(0, 20)) expect(await kept().keep(by(owner.id), one, 1_000_000)).toBeTrue();
      const late = responses.slice(20);
      await Promise.all([
        ...late.map((one) => kept().keep(by(owner.id), one, 1_000_000)),
        policies(owner, { keepsContent: false }).then(() => admin.purgeContent(owner.id)),
      ]);
      for (const { id } of responses) expect(await kept().find(every(owner.id), id)).toBeNull();
      expect(await kept().keep(by(owner.id), response(), 1_000_000)).toBeTrue();
      const [left] = await db.query<{ rows: number; bytes: number }>(
        `select (select count(*)::int from kept_response where organization_id = $1) as rows,
           (select bytes from kept_response_total where organization_id = $1) as bytes`,
        [owner.id.slice(4)],
      );
      expect(left).toEqual({ rows: 0, bytes: 0 });
      await policies(owner, { keepsContent: true });
      await admin.purgeContent(owner.id);
      const one = response();
      await kept().keep(by(owner.id), one, 1_000_000);
      await admin.purgeContent(owner.id);
      expect(await kept().find(every(owner.id), one.id)).not.toBeNull();
    });

    test("is emptied by the next upkeep where a node died in between; nobody else is", async () => {
      const [owner, other] = [await organization(), await organization()];
      const [one, two] = [response(), response()];
      await kept().keep(by(owner.id), one, 1_000_000);
      await kept().keep(by(other.id), two, 1_000_000);
      await policies(owner, { keepsContent: false });
      await kept().forget();
      expect(await kept().find(every(owner.id), one.id)).toBeNull();
      expect(await kept().find(every(other.id), two.id)).not.toBeNull();
    });
  });

  describe("closing", () => {
    test("revokes every key, takes plan, extra usage and webhook, and lets nothing be changed or made", async () => {
      const owner = await organization();
      const secret = newSecret();
      const [one, two] = [await key(owner, secret), await key(owner)];
      await admin.revokeKey({ id: two.id, old: false, actor });
      await admin.setExtraUsage(owner.id, { enabled: true, capNanos: 9 }, actor);
      const hook = { url: "https://example.test/", shares: [80], keyExpiryDays: 14 };
      await setHook(admin, owner.id, hook);
      expect(await admin.closeOrganization(owner.id, actor, 1)).toHaveProperty("stale");
      const closed = changed(await admin.closeOrganization(owner.id, actor, 2));
      expect(closed).toMatchObject({ status: "closed", plan: null, extraUsage: { enabled: false }, version: 3 });
      expect(closed.closedAt).toBeDate();
      expect(judge(await store.credential(secret.hash), "ab")).toMatchObject({ refusal: "revoked" });
      expect(await admin.findKey(one.id)).toMatchObject({ state: "revoked", version: 2 });
      expect((await admin.findKey(two.id))?.version).toBe(2);
      expect(await findHook(admin, owner.id)).toBeNull();
      const [entry] = await admin.listAudit({ organizationId: owner.id, limit: 1 });
      expect(entry).toMatchObject({
        action: "organization.close",
        details: { keys_revoked: 1, before: { status: "active", plan: "pro", extra_usage: true } },
      });
      expect(await createKey(owner)).toBe("closed");
      expect(await admin.setOrganizationStatus(owner.id, "active", actor)).toBe("closed");
      expect(await admin.setOrganizationPlan(owner.id, "pro", actor)).toBe("closed");
      expect(await admin.setPolicies(owner.id, { keepsContent: false }, actor)).toBe("closed");
      expect(await admin.renameOrganization(owner.id, { name: "x" }, actor)).toBe("closed");
      expect(await admin.closeOrganization(owner.id, actor)).toBe("closed");
      expect(await admin.findOrganization(owner.slug)).toEqual(closed);
      expect(
        await admin.createOrganization({ id: newId("org_"), slug: owner.slug, name: "x", plan: "pro", actor }),
      ).toBe("slug_taken");
    });

    test("leaves no key that was made at the same moment", async () => {
      const owner = await organization();
      const making = Array.from({ length: 12 }, () => createKey(owner));
      const closing = admin.closeOrganization(owner.id, actor);
      await Promise.all([...making, closing, ...Array.from({ length: 12 }, () => createKey(owner))]);
      const { items } = await admin.pageKeys({ organizationId: owner.id, limit: 100 });
      expect(items.filter(({ state }) => state !== "revoked")).toEqual([]);
    });

    test("leaves it for fifteen months, then all goes but the audit log, and its slug stays taken", async () => {
      const [owner, other] = [await organization(), await organization()];
      const [gone, stays] = [await key(owner), await key(other)];
      const whole = { subject: "organization", id: owner.id, organizationId: owner.id } as const;
      await setLimits(db, whole, { keys: { week: 5 } });
      await addTeam(db, owner.id, { limits: { ...noBudget, week: 5 } });
      const operatorOf = async ({ id: organizationId }: Organization) => {
        const id = idOf(Bun.randomUUIDv7(), "op_");
        const about = { id, name: id, role: "organization-admin", organizationId, expiresAt: null } as const;
        await operators(db).createOperator({ ...about, secret: newSecret(), actor });
        return async () => (await operators(db).findOperator(id))!.revokedAt !== null;
      };
      const [isOwnRevoked, isOtherRevoked] = [await operatorOf(owner), await operatorOf(other)];
      const closed = changed(await admin.closeOrganization(owner.id, actor));
      await admin.closeOrganization((await organization()).id, actor);
      const after = (months: number, ms: number) => {
        const instant = new Date(closed.closedAt!);
        instant.setUTCMonth(instant.getUTCMonth() + months);
        return new Date(instant.getTime() + ms);
      };
      const forgetAt = (instant: Date) => at(instant, () => forgetClosed(db));
      await forgetAt(after(14, 27 * day_ms));
      expect(await admin.findOrganization(owner.id)).toEqual(closed);
      await forgetAt(after(15, 5 * day_ms));
      expect(await admin.findOrganization(owner.id)).toBeNull();
      expect(await admin.findKey(gone.id)).toBeNull();
      expect((await admin.findKey(stays.id))?.state).toBe("active");
      expect([await isOwnRevoked(), await isOtherRevoked()]).toEqual([true, false]);
      expect((await admin.listAudit({ organizationId: owner.id, limit: 1 }))[0]?.action).toBe("organization.close");
      const again = { id: newId("org_"), slug: owner.slug, name: "x", plan: "pro", actor };
      expect(await admin.createOrganization(again)).toBe("slug_taken");
    });
  });
});

test("a use that has to be noted waits for a transaction that changes the key", async () => {
  const owned = await openDatabase();
  try {
    const [admin, store] = [administration(owned.db), directory(owned.db)];
    const { id: keyId } = await addKey(owned.db, (await addOrganization(owned.db)).id);
    let noting: Promise<void> | undefined;
    await owned.db.transaction(async (tx) => {
      await tx.query("select 1 from api_key where id = $1 for update", [keyId.slice(4)]);
      await store.touch(new Map([[keyId, "192.0.2.1"]]));
      expect((await admin.findKey(keyId))?.lastUsedAt).toBeNull();
      noting = store.touch(new Map([[keyId, "192.0.2.2"]]), "certain");
      await lockAwaited(owned.db);
    });
    await noting;
    expect((await admin.findKey(keyId))?.lastUsedFrom).toBe("192.0.2.2");
    await store.touch(new Map([[keyId, ""]]), "certain");
    expect((await admin.findKey(keyId))?.lastUsedFrom).toBe("192.0.2.2");
  } finally {
    await owned.drop();
  }
});
