// Teams and limits as an administrator sets them: two at once, what was removed, and what the log keeps.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { management } from "../../../src/admin/management/client.ts";
import { allOf } from "../../../src/admin/management/page.ts";
import { hashKey } from "../../../src/core/auth/key.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { emptyLedger } from "../../admin/management/empty-ledger.ts";
import { listKeys, listTeams } from "../../admin/management/lists.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";

let db: Database;
let drop: () => Promise<void>;
let organizations = 0;
beforeAll(async () => {
  const fresh = await migratedDatabase();
  drop = fresh.drop;
  db = await serverDatabase(fresh.url);
}, 60_000);
afterAll(async () => {
  await db.close();
  await drop();
});

async function setup() {
  const admin = administration(db);
  const manage = management({
    administration: admin,
    ...emptyLedger(),
    catalog: () => ({
      plans: new Map([["pro", { ...noLimits, name: "pro", week: 1_000 }]]),
      models: [],
      upstreams: [],
      billing: { currency: "USD", provider: "Sluice" },
    }),
    actor: "cli:ann",
    now_ms: () => Date.now(),
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
  });
  const organization = `org-${++organizations}`;
  await manage.createOrganization({ slug: organization, plan: "pro" });
  return { admin, manage, organization };
}

test("a key's credential tells what it and its team may use in a minute, where they are limited", async () => {
  const { admin, manage, organization } = await setup();
  const limits = { requestsPerMinute: 5, week: 900 };
  const team = await manage.createTeam({
    organization,
    name: "interns",
    limits,
    keyLimits: { tokensPerMinute: 70 },
  });
  const { key: secret, ...key } = await manage.createKey({ organization, name: "app", team: team.id });
  const known = async () => (await directory(db).credential(hashKey(secret!)))!.rates;
  const ofKey = { limitedBy: "key", id: key.id, limits: { requestsPerMinute: null, tokensPerMinute: 70 } };
  const ofTeam = { limitedBy: "team", id: team.id, limits: { requestsPerMinute: 5, tokensPerMinute: null } };
  expect(await known()).toEqual([ofKey, ofTeam] as never);
  await manage.updateKey({ id: key.id, limits: { tokensPerMinute: null, session: 800 } });
  expect(await known()).toEqual([ofTeam] as never);
  const [entry] = await admin.listAudit({ limit: 1 });
  expect(entry!.details).toMatchObject({ limits: { session: 800 }, before: { limits: { tokens_per_minute: 70 } } });
  await manage.removeTeam({ team: team.id });
  expect(await known()).toEqual([]);
});

test("of two changes at once both count, and one that names a version that is gone is refused", async () => {
  const { admin, manage, organization } = await setup();
  const key = await manage.createKey({ organization, name: "app", limits: { week: 900 } });
  const team = await manage.createTeam({ organization, name: "research" });
  for (const change of [
    (limits: object) => manage.updateKey({ id: key.id, limits }),
    (limits: object) => manage.updateTeam({ team: team.id, limits }),
    (limits: object) => manage.updateKeyDefault({ organization, limits }),
    (limits: object) => manage.updateMemberDefault({ organization, limits }),
  ]) {
    await Promise.all([change({ week: 500 }), change({ month: 4_000 }), change({ session: 3 })]);
    expect((await change({ week: 400 })).limits).toMatchObject({ session: 3, week: 400, month: 4_000 });
  }
  await manage.updateKey({ id: key.id, limits: { week: 300 } });
  const late = manage.updateKey({ id: key.id, version: key.version, limits: { week: 5_000 } });
  await expect(late).rejects.toThrow(/^Key 'app' has version \d+ now, not 1: .*last change was key\.update by /);
  const stale = await admin.updateTeam({ id: team.id, actor: "cli:bob", version: team.version }, () => ({ name: "x" }));
  expect(stale).toMatchObject({ stale: { name: "research" } });
  expect((await manage.findKey({ id: key.id })).limits).toMatchObject({ week: 300, month: 4_000 });
});

test("a team that was removed is gone, its name is free, and its keys are in no team", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "interns", keyLimits: { week: 100 } });
  const key = await manage.createKey({ organization, name: "app", team: "interns" });
  expect(await manage.findTeam({ team: "interns", organization })).toMatchObject({ id: team.id, keys: 1 });
  expect((await manage.removeTeam({ team: team.id })).keys).toBe(1);
  expect(await manage.findKey({ id: key.id })).toMatchObject({ team: null, limits: { week: 100 } });
  await expect(manage.findTeam({ team: team.id })).rejects.toThrow("There is no team");
  expect(await listTeams(manage, { organization })).toEqual([]);
  expect((await manage.createTeam({ organization, name: "interns" })).id).not.toBe(team.id);
});

test("every change stands in the audit log, from what to what", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "research", limits: { week: 900 } });
  await manage.updateTeam({ team: team.id, name: "science", limits: { week: 800, month: 5_000 } });
  const key = await manage.createKey({ organization, name: "app" });
  await manage.updateKey({ id: key.id, team: "science", limits: { session: 10 } });
  await manage.updateKeyDefault({ organization, limits: { month: 50 } });
  const { data: log } = await manage.pageAudit({ organization, limit: 6 });
  expect(log.map(({ action, subject, details }) => ({ action, subject, details }))).toMatchObject([
    { action: "organization.key_limits", details: { limits: { month: 50 }, before: null } },
    {
      action: "key.update",
      subject: key.id,
      details: { team_id: team.id, limits: { session: 10 }, before: { team_id: null, limits: {} } },
    },
    { action: "key.create", subject: key.id },
    {
      action: "team.update",
      subject: team.id,
      details: {
        name: "science",
        limits: { week: 800, month: 5_000 },
        before: { name: "research", limits: { week: 900 } },
      },
    },
    { action: "team.create", subject: team.id, details: { name: "research", limits: { week: 900 } } },
    { action: "organization.create" },
  ]);
});

test("a limit above the plan's is refused wherever it is given, and so is one that is no limit", async () => {
  const { manage, organization } = await setup();
  const above = { week: 1_001 };
  const key = await manage.createKey({ organization, name: "app" });
  for (const work of [
    () => manage.createTeam({ organization, name: "a", limits: above }),
    () => manage.createTeam({ organization, name: "a", keyLimits: above }),
    () => manage.createKey({ organization, name: "a", limits: above }),
    () => manage.updateKey({ id: key.id, limits: above }),
    () => manage.updateKeyDefault({ organization, limits: above }),
  ])
    await expect(work()).rejects.toThrow("of 1,001 is above that of the plan 'pro', 1,000.");
  for (const limits of [{ week: -1 }, { week: 0 }, { week: 0.5 }, { day: 5 }, ["week"], "week"] as never[])
    await expect(manage.updateKey({ id: key.id, limits })).rejects.toThrow(/limit/);
  expect(await listTeams(manage, { organization })).toEqual([]);
});

test("the list of keys with their limits says of each what the key itself says, in parts, of one organization", async () => {
  const { manage, organization } = await setup();
  const { manage: other, organization: elsewhere } = await setup();
  await other.createKey({ organization: elsewhere, name: "other", limits: { week: 1 } });
  await manage.createTeam({ organization, name: "interns" });
  await manage.createKey({ organization, name: "limited", limits: { week: 900 } });
  await manage.createKey({ organization, name: "plain" });
  const member = await manage.createKey({ organization, name: "member", team: "interns", limits: { month: 5 } });
  const listed = await allOf((page) => manage.pageKeys({ organization, ...page, limit: 2 }));
  expect(listed.map(({ name }) => name)).toEqual(["limited", "plain", "member"]);
  for (const key of listed) expect(key).toEqual(await manage.findKey({ id: key.id }));
  expect(listed.at(-1)).toMatchObject({ id: member.id, team: { name: "interns" }, limits: { month: 5, week: null } });
});

test("of two keys that are to have a name for themselves, one is made, and a revoked one is in nobody's way", async () => {
  const { manage, organization } = await setup();
  const make = () => manage.createKey({ organization, name: "build server", ownName: true });
  const both = await Promise.allSettled([make(), make(), make()]);
  const made = both.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(made).toHaveLength(1);
  for (const one of both) {
    if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "already_exists" });
  }
  expect((await manage.createKey({ organization, name: "build server" })).key).toStartWith("slk_");
  for (const { id } of await listKeys(manage, { organization })) await manage.revokeKey({ id });
  expect((await make()).key).toStartWith("slk_");
});
