// The guarantees of a `Directory` and its `Administration`, on both kinds of database.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Administration } from "../../../src/admin/store/administration.ts";
import type { Organization } from "../../../src/admin/store/organization.ts";
import type { Directory, NewSecret } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";
import { addKey, addOrganization } from "./made.ts";
import { newSecret } from "./new-key.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  let store: Directory;
  let admin: Administration;
  beforeAll(() => {
    store = directory(db);
    admin = administration(db);
  });

  const newId = (prefix: "org_" | "key_") => idOf(Bun.randomUUIDv7(), prefix);
  const organization = (plan: string | null = "pro") => addOrganization(db, { name: "Acmé — 株", plan });
  const key = (owner: Organization, secret: NewSecret, more: { expiresAt?: Date; models?: string[] } = {}) =>
    addKey(db, owner.id, { name: "laptop", scopes: ["models:read", "inference:create"], secret, ...more });

  const at = <T>(instant: Date, work: () => Promise<T>): Promise<T> => withClock(db, instant, work);

  test("the audit log repeats no secret that was typed for something else", async () => {
    const secret = `slo_${"x1Y2".repeat(10)}`;
    const id = newId("org_");
    const actor = `cli:ann (claims ${secret})`;
    await admin.createOrganization({ id, slug: id.slice(4), name: `our ${secret}`, plan: null, actor });
    const [entry] = await admin.listAudit({ organizationId: id, limit: 1 });
    expect(entry!.actor).toBe("cli:ann (claims <token>)");
    expect(JSON.stringify(entry)).toContain("our <token>");
    expect(JSON.stringify(entry)).not.toContain("x1Y2");
  });

  describe("organizations", () => {
    test("a slug belongs to one, also when two ask at once", async () => {
      const slug = `twice-${newId("org_").slice(4)}`;
      const ask = () => admin.createOrganization({ id: newId("org_"), slug, name: slug, plan: null, actor: "cli:ann" });
      const made = await Promise.all([ask(), ask(), ask()]);
      expect(made.filter((one) => one === "slug_taken")).toHaveLength(2);
      const first = made.find((one) => one !== "slug_taken")!;
      expect(await admin.listAudit({ organizationId: (first as Organization).id, limit: 10 })).toHaveLength(1);
    });

    test("its plan and its extra usage are changed with an entry each, and no entry where nothing changes", async () => {
      const { id } = await organization("pro");
      expect(await admin.setOrganizationPlan(id, "starter", "cli:ann")).toMatchObject({ plan: "starter" });
      await admin.setOrganizationPlan(id, "starter", "cli:ann");
      expect(await admin.setOrganizationPlan(id, null, "cli:ann")).toMatchObject({ plan: null });
      const on = { enabled: true, capNanos: 5_000 } as const;
      expect(await admin.setExtraUsage(id, on, "cli:ann")).toMatchObject({ extraUsage: on });
      await admin.setExtraUsage(id, on, "cli:ann");
      const off = await admin.setExtraUsage(id, { enabled: false }, "cli:ann");
      // The cap stays, because requests that run on extra usage are still bounded by it.
      expect(off).toMatchObject({ extraUsage: { enabled: false, capNanos: 5_000 } });
      const log = await admin.listAudit({ organizationId: id, limit: 10 });
      const cap = "0.000005000";
      expect(log.map(({ action, details }) => [action, details])).toEqual([
        ["organization.extra_usage", { enabled: false, cap, before: { enabled: true, cap } }],
        ["organization.extra_usage", { enabled: true, cap, before: { enabled: false, cap: null } }],
        ["organization.plan", { plan: null, before: "starter" }],
        ["organization.plan", { plan: "starter", before: "pro" }],
        ["organization.create", expect.anything()],
      ]);
    });

    test("a new anchor counts when the running month has ended, and the last one that was set before wins", async () => {
      const made = await at(new Date("2026-01-31T10:00:00Z"), () => organization());
      const set = (anchor: string) => admin.setOrganizationAnchor(made.id, new Date(anchor), "cli:ann");
      await at(new Date("2026-02-10T00:00:00Z"), async () => {
        const countsFrom = new Date("2026-02-28T10:00:00Z");
        await set("2026-02-05T00:00:00Z");
        expect(await set("2026-03-15T12:00:00Z")).toEqual({
          ...made,
          nextAnchor: { anchorAt: new Date("2026-03-15T12:00:00Z"), countsFrom },
          version: 3,
        });
      });
      const after = { ...made, anchorAt: new Date("2026-03-15T12:00:00Z"), nextAnchor: null, version: 3 };
      await at(new Date("2026-02-28T10:00:00Z"), async () => {
        expect(await admin.findOrganization(made.id)).toEqual(after);
        expect(await admin.listOrganizations()).toContainEqual(after);
      });
      expect((await admin.listAudit({ organizationId: made.id, limit: 1 }))[0]).toMatchObject({
        action: "organization.anchor",
        details: { anchor_at: "2026-03-15T12:00:00.000Z", counts_from: "2026-02-28T10:00:00.000Z" },
      });
    });

    test("an adjustment is an entry in the book and one in the audit log, or neither", async () => {
      const { id } = await organization();
      const book = ledger(db, { recovery: "checkpoint" });
      const newEntry = () => idOf(Bun.randomUUIDv7(), "req_");
      const entries = (["session", "week", "month"] as const).map((kind) => ({ entryId: newEntry(), kind }));
      const adjust = (nanos: number, of = entries) =>
        admin.adjustUsage({ organizationId: id, entries: of, nanos, reason: "outage", actor: "cli:ann" });
      const [week, month] = entries.slice(1);
      expect(await adjust(700)).toEqual([
        { ...entries[0]!, added: null },
        { ...week!, added: 700 },
        { ...month!, added: 700 },
      ]);
      expect(await adjust(-1_000, [{ entryId: newEntry(), kind: "week" }])).toMatchObject([{ added: -700 }]);
      const wrong = [
        { entryId: newEntry(), kind: "week" as const },
        { entryId: "no id", kind: "month" as const },
      ];
      await expect(adjust(5, wrong)).rejects.toThrow();
      const { windows, running } = await book.reading(id, noLimits);
      expect([windows.session.used, windows.week.used, windows.month.used, running]).toEqual([0, 0, 700, 0]);
      expect(await book.check()).toEqual([]);
      expect(await book.check(true)).toEqual([]);
      const log = await admin.listAudit({ organizationId: id, limit: 10 });
      expect(log.map(({ action }) => action)).toEqual([...Array(3).fill("usage.adjust"), "organization.create"]);
      expect(log[0]?.details).toEqual({
        window: "week",
        amount: "-0.000001000",
        added: "-0.000000700",
        reason: "outage",
      });
    });

    test("what is not there is null, whatever is asked for", async () => {
      for (const asked of [
        "",
        "nobody",
        newId("org_"),
        "org_",
        "org_xyz",
        "'; drop table organization; --",
        "k".repeat(9999),
      ]) {
        expect(await admin.findOrganization(asked)).toBeNull();
        expect(await admin.setOrganizationStatus(asked, "suspended", "cli:ann")).toBeNull();
        expect(await admin.findKey(asked)).toBeNull();
        expect(await admin.revokeKey({ id: asked, old: false, actor: "cli:ann" })).toBeNull();
      }
    });

    test("suspending shows in every look-up, resuming undoes it, and repeating either writes nothing", async () => {
      const owner = await organization();
      const secret = newSecret();
      await key(owner, secret);
      for (const status of ["suspended", "suspended", "active"] as const) {
        expect(await admin.setOrganizationStatus(owner.id, status, "cli:bob")).toMatchObject({ status });
        expect((await store.credential(secret.hash))?.organization.status).toBe(status);
      }
      const entries = await admin.listAudit({ organizationId: owner.id, limit: 2 });
      expect(entries.map(({ action, actor, subject }) => [action, actor, subject])).toEqual([
        ["organization.resume", "cli:bob", owner.id],
        ["organization.suspend", "cli:bob", owner.id],
      ]);
    });
  });

  describe("keys", () => {
    test("a look-up by hash answers all that authentication needs, at the store's time", async () => {
      const owner = await organization(null);
      const secret = newSecret();
      const expiresAt = new Date("2031-02-03T04:05:06.789Z");
      const made = await key(owner, secret, { expiresAt, models: ["acme/writer-1", 'odd,"{name}\\'] });
      const found = (await at(new Date("2030-01-01T00:00:00.001Z"), () => store.credential(secret.hash)))!;
      const { id, slug, name, status, plan, keepsContent } = owner;
      expect(found.organization).toEqual({ id, slug, name, status, plan, keepsContent });
      expect(found.key).toEqual({
        id: made.id,
        name: "laptop",
        scopes: ["models:read", "inference:create"],
        models: ["acme/writer-1", 'odd,"{name}\\'],
        allowFrom: null,
        expiresAt,
        revokedAt: null,
        lastUsedAt: null,
      });
      expect(found.ends).toEqual({ lifetimeAt: null, unusedAt: null });
      expect(found.secret).toMatchObject({ expiresAt: null, revokedAt: null });
      expect(found.readAt).toEqual(new Date("2030-01-01T00:00:00.001Z"));
    });

    test("an unknown hash is null, of whatever length", async () => {
      for (const bytes of [0, 1, 31, 32, 33, 10_000]) {
        expect(await store.credential(new Uint8Array(bytes))).toBeNull();
      }
    });

    test("many look-ups at once are one statement, and each gets its own answer, also where there is none", async () => {
      const owner = await organization();
      const secrets = Array.from({ length: 20 }, newSecret);
      const keys = await Promise.all(secrets.slice(1).map((secret) => key(owner, secret)));
      let statements = 0;
      const unheard = { answered() {}, opened() {}, lost() {} };
      db.watch({ ...unheard, answered: () => void statements++ });
      const found = await Promise.all(Array.from({ length: 200 }, (_, i) => store.credential(secrets[i % 20]!.hash)));
      db.watch(unheard);
      const ids = [undefined, ...keys.map(({ id }) => id)];
      expect(found.map((one) => one?.key.id)).toEqual(Array.from({ length: 200 }, (_, i) => ids[i % 20]));
      // The upkeep of an embedded database may run statements of its own meanwhile.
      expect(statements).toBeWithin(1, 5);
    });

    test("nothing of a key is kept when a part of it cannot be, and the error shows nothing of what was written", async () => {
      const owner = await organization();
      const secret = newSecret();
      await key(owner, secret);
      const printed = Bun.inspect(await key(owner, secret).catch((thrown: unknown) => thrown));
      expect(printed).toContain("key_secret_hash_key");
      expect(printed).not.toContain(Buffer.from(secret.hash).toString("hex"));
      expect(printed).not.toContain("insert into");
      await expect(key({ ...owner, id: newId("org_") }, newSecret())).rejects.toThrow("foreign key");
      expect((await admin.pageKeys({ organizationId: owner.id, limit: 9 })).items).toHaveLength(1);
      expect(await admin.listAudit({ organizationId: owner.id, limit: 10 })).toHaveLength(2);
    });

    test("last use is remembered for those that exist, and what is no key's id does no harm", async () => {
      const owner = await organization();
      const made = await key(owner, newSecret());
      const usedAt = new Date("2030-05-05T05:05:05.005Z");
      const ids = [made.id, newId("key_"), "key_", "", "nonsense"];
      await at(usedAt, () => store.touch(new Map(ids.map((id) => [id, "192.0.2.7"]))));
      const used = { lastUsedAt: usedAt, lastUsedFrom: "192.0.2.7" };
      expect(await admin.findKey(made.id)).toMatchObject(used);
      await store.touch(new Map());
      expect(await admin.findKey(made.id)).toMatchObject(used);
    });
  });

  describe("a change of a key", () => {
    const actor = "operator:ann";
    const changesOf = (owner: { id: string }) =>
      admin.listAudit({ organizationId: owner.id, action: "key.update", limit: 9 });

    test("sets what is named, tells authentication, and is written down with what was before", async () => {
      const owner = await organization();
      const secret = newSecret();
      const made = await key(owner, secret);
      const change = {
        ...{ name: "renamed", owner: "ann", labels: { stage: "test" }, allowFrom: ["10.0.0.0/8"] },
        expiresAt: new Date("2031-02-03T04:05:06.789Z"),
      };
      expect(await admin.updateKey({ id: made.id, actor }, () => change)).toEqual({
        ...made,
        ...change,
        endsAt: change.expiresAt,
        version: 2,
      });
      expect(await store.credential(secret.hash)).toMatchObject({ key: { allowFrom: ["10.0.0.0/8"] } });
      const [entry] = await changesOf(owner);
      expect(entry).toMatchObject({
        ...{ actor, subject: made.id },
        details: {
          ...{ name: "renamed", allow_from: ["10.0.0.0/8"] },
          before: { name: made.name, allow_from: null },
        },
      });
      // Fields that were not named or did not change are not in the entry.
      expect(Object.keys(entry!.details)).not.toContain("scopes");
      await admin.updateKey({ id: made.id, actor }, () => ({ name: "renamed", owner: null }));
      expect((await changesOf(owner))[0]!.details).toEqual({ owner: null, before: { owner: "ann" } });
      await admin.updateKey({ id: made.id, actor }, () => change);
      await admin.updateKey({ id: made.id, actor }, () => change);
      expect(await changesOf(owner)).toHaveLength(3);
      expect(await admin.updateKey({ id: newId("key_"), actor }, () => change)).toBeNull();
    });

    test("keeps those that others make of other things at the same time", async () => {
      const made = await key(await organization(), newSecret());
      await Promise.all([
        admin.updateKey({ id: made.id, actor }, () => ({ owner: "ann" })),
        admin.updateKey({ id: made.id, actor }, () => ({ name: "one" })),
        admin.updateKey({ id: made.id, actor }, () => ({ labels: { a: "b" } })),
      ]);
      expect(await admin.findKey(made.id)).toMatchObject({ owner: "ann", name: "one", labels: { a: "b" } });
    });

    test("those that nobody uses are found: by their last use, else by their creation", async () => {
      const owner = await organization();
      const [used, unused] = [await key(owner, newSecret()), await key(owner, newSecret())];
      const day_ms = 86_400_000;
      const unusedFor = async (unusedFor_ms: number, now: Date) =>
        (await at(now, () => admin.pageKeys({ organizationId: owner.id, limit: 9, unusedFor_ms }))).items.map(
          ({ id }) => id,
        );
      const later = (days: number) => new Date(unused.createdAt.getTime() + days * day_ms);
      await at(later(10), () => store.touch(new Map([[used.id, "192.0.2.7"]])));
      expect(await unusedFor(30 * day_ms, later(31))).toEqual([unused.id]);
      expect(await unusedFor(30 * day_ms, new Date(later(30).getTime() - 1))).toEqual([]);
      expect(await unusedFor(30 * day_ms, later(40))).toEqual([used.id, unused.id]);
    });
  });

  test("keys that end soon are found: by their own date or by a policy, and none that does not work any more", async () => {
    const day_ms = 86_400_000;
    const owner = await organization();
    const in_days = (days: number) => new Date(Date.now() + days * day_ms);
    const [soon, late, never, revoked] = [
      await key(owner, newSecret(), { expiresAt: in_days(5) }),
      await key(owner, newSecret(), { expiresAt: in_days(20) }),
      await key(owner, newSecret()),
      await key(owner, newSecret(), { expiresAt: in_days(5) }),
    ];
    await admin.revokeKey({ id: revoked.id, old: false, actor: "cli:ann" });
    const within = async (days: number) =>
      (await admin.pageKeys({ organizationId: owner.id, limit: 9, endsWithin_ms: days * day_ms })).items.map(
        ({ id }) => id,
      );
    expect(await within(7)).toEqual([soon.id]);
    expect(await within(30)).toEqual([soon.id, late.id]);
    await admin.setPolicies(owner.id, { keyLifetimeMaxDays: 6 }, "cli:ann");
    expect(await within(7)).toEqual([soon.id, late.id, never.id]);
  });

  describe("rotation", () => {
    test("a later rotation never lengthens an earlier grace", async () => {
      const made = await key(await organization(), newSecret());
      const graces = [new Date("2030-01-02T00:00:00Z"), new Date("2030-01-03T00:00:00Z"), null];
      for (const graceEndsAt of graces) {
        await admin.rotateKey({ id: made.id, secret: newSecret(), graceEndsAt, actor: "cli:ann" });
      }
      const secrets = (await admin.findKey(made.id))!.secrets.map((secret) => secret.expiresAt);
      expect(secrets).toEqual([null, null, graces[1]!, graces[0]!]);
    });

    test("rotations at once each add a secret, newest first", async () => {
      const made = await key(await organization(), newSecret());
      const secrets = Array.from({ length: 6 }, newSecret);
      await Promise.all(
        secrets.map((secret) => admin.rotateKey({ id: made.id, secret, graceEndsAt: null, actor: "cli:ann" })),
      );
      expect((await admin.findKey(made.id))?.secrets).toHaveLength(7);
      for (const { hash } of secrets) expect((await store.credential(hash))?.key.id).toBe(made.id);
    });
  });

  describe("revocation", () => {
    test("a revoked key says so with all its secrets, keeps its first instant, and is announced once", async () => {
      const owner = await organization();
      const [old, fresh] = [newSecret(), newSecret()];
      const made = await key(owner, old);
      await admin.rotateKey({ id: made.id, secret: fresh, graceEndsAt: null, actor: "cli:ann" });
      const revoked = await admin.revokeKey({ id: made.id, old: false, actor: "cli:ann" });
      expect(await admin.revokeKey({ id: made.id, old: false, actor: "cli:bob" })).toEqual(revoked);
      for (const { hash } of [old, fresh]) {
        expect((await store.credential(hash))?.key.revokedAt).toEqual(revoked!.revokedAt);
      }
      const actions = await admin.listAudit({ organizationId: owner.id, limit: 10 });
      expect(actions.map((entry) => entry.action)).toEqual([
        "key.revoke",
        "key.rotate",
        "key.create",
        "organization.create",
      ]);
    });

    test("a listener gets the id of each key and organization that changed, once it is written", async () => {
      const heard: { id: string; wasWritten: Promise<boolean> }[] = [];
      const owner = await organization();
      const made = await key(owner, newSecret());
      const seconds: number[] = [];
      const changed = (id: string) => {
        const written = id.startsWith("org_")
          ? admin.findOrganization(id).then((one) => one?.status === "suspended")
          : admin.findKey(id).then((one) => one?.secrets.length === 2 || one?.revokedAt != null);
        heard.push({ id, wasWritten: written });
      };
      const stop = await revocations(db, { changed, took: (took) => seconds.push(took) });
      await admin.setOrganizationStatus(owner.id, "suspended", "cli:ann");
      await until(() => heard.length === 1);
      await admin.rotateKey({ id: made.id, secret: newSecret(), graceEndsAt: null, actor: "cli:ann" });
      await until(() => heard.length === 2);
      await admin.revokeKey({ id: made.id, old: false, actor: "cli:ann" });
      await until(() => heard.length === 3);
      await admin.revokeKey({ id: made.id, old: false, actor: "cli:ann" });
      await stop();
      await admin.setOrganizationStatus(owner.id, "active", "cli:ann");
      expect(heard.map(({ id }) => id)).toEqual([owner.id, made.id, made.id]);
      expect(await Promise.all(heard.map(({ wasWritten }) => wasWritten))).toEqual([true, true, true]);
      await until(() => seconds.length === 3);
      for (const took of seconds) expect(took).toBeWithin(0, 5);
    });
  });

  test("the audit log tells who did what to whom and never a hash, newest first, to a limit", async () => {
    const owner = await organization();
    const secret = newSecret();
    const made = await key(owner, secret, { expiresAt: new Date("2031-01-01T00:00:00Z") });
    const [newest, ...rest] = await admin.listAudit({ organizationId: owner.id, limit: 2 });
    expect(newest).toEqual({
      number: (await admin.auditHead()).number,
      at: made.createdAt,
      actor: "cli:ann",
      actorName: null,
      address: null,
      action: "key.create",
      organizationId: owner.id,
      organization: owner.slug,
      subject: made.id,
      subjectName: "laptop",
      details: {
        name: "laptop",
        scopes: ["models:read", "inference:create"],
        models: null,
        expires_at: "2031-01-01T00:00:00.000Z",
        secret: "slk_abcd…wxyz",
      },
      names: {},
      hash: (await admin.auditHead()).hash,
    });
    expect(rest).toHaveLength(1);
    expect(await admin.listAudit({ organizationId: owner.id, limit: 1 })).toEqual([newest!]);
    expect((await admin.listAudit({ limit: 1 }))[0]?.subject).toBe(made.id);
    expect(await admin.listAudit({ organizationId: "org_nobody", limit: 10 })).toEqual([]);
    expect(JSON.stringify(newest)).not.toContain(Buffer.from(secret.hash).toString("hex"));
  });
});
