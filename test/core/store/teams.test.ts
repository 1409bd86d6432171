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
  await manage.updateKeyBudget({ id: key.id, limits: { tokensPerMinute: null, session: 800 } });
  expect(await known()).toEqual([ofTeam] as never);
  const [entry] = await admin.listAudit({ limit: 1 });
  expect(entry!.details).toMatchObject({ limits: { session: 800 }, before: { limits: { tokens_per_minute: 70 } } });
  await manage.removeTeam({ team: team.id });
  expect(await known()).toEqual([]);
});

test("of two changes at once the second is refused, and says what it would have overwritten", async () => {
  const { admin, manage, organization } = await setup();
  const key = await manage.createKey({ organization, name: "app", limits: { week: 900 } });
  const seen = await admin.keyBudget(key.id);
  await manage.updateKeyBudget({ id: key.id, limits: { week: 500 } });
  const budget = { ...seen.budget, month: 4_000 };
  // Without its version, by which it would be refused as well.
  expect(await admin.setKeyBudget({ id: key.id }, seen, { teamId: null, budget }, "cli:bob")).toMatchObject({
    now: { budget: { week: 500, month: null } },
  });
  expect(await admin.keyBudget(key.id)).toMatchObject({ budget: { week: 500, month: null } });

  // The same through the verbs, which read before they write: one of two is refused, or both counted one after the other.
  const team = await manage.createTeam({ organization, name: "research" });
  const before = (await admin.findTeam(team.id))!;
  const both = await Promise.allSettled(
    [700, 800].map((week) => manage.updateTeam({ team: team.id, limits: { week } })),
  );
  const refused = both.filter((one) => one.status === "rejected");
  for (const { reason } of refused)
    expect(reason.message).toMatch(
      /^Somebody else has changed this team meanwhile: week is [78]00 and was not limited\./,
    );
  const now = await manage.findTeam({ team: team.id });
  expect(now.limits.week).toBeOneOf([700, 800]);
  // A change by somebody who saw the team as it was made.
  const change = { ...before, budget: { ...before.budget, month: 4_000 } };
  expect(await admin.updateTeam({ id: team.id }, before, change, "cli:bob")).toMatchObject({
    now: { budget: { week: now.limits.week, month: null } },
  });
  expect(await manage.findTeam({ team: team.id })).toEqual(now);
});

test("a change that came between two parts of a read stops nobody who has seen it, and says which version stands", async () => {
  const { admin, manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "research" });
  await manage.updateTeam({ team: team.id, limits: { week: 700 } });
  const now = (await admin.findTeam(team.id))!;
  // The version was read before that change, the limits after it.
  const torn = { ...now, version: team.version };
  const change = { ...torn, budget: { ...now.budget, week: 800 } };
  const stopped = await admin.updateTeam({ id: team.id, version: team.version }, torn, change, "cli:bob");
  expect(stopped).toMatchObject({ now: { version: 2, budget: { week: 700 } } });
  const done = await admin.updateTeam({ id: team.id }, torn, change, "cli:bob");
  expect(done).toMatchObject({ version: 3, budget: { week: 800 } });
});

test("a team that was removed is gone, its name is free, and its keys are in no team", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "interns", keyLimits: { week: 100 } });
  const key = await manage.createKey({ organization, name: "app", team: "interns" });
  expect(await manage.findTeam({ team: "interns", organization })).toMatchObject({ id: team.id, keys: 1 });
  expect((await manage.removeTeam({ team: team.id })).keys).toBe(1);
  expect(await manage.findKeyBudget({ id: key.id })).toMatchObject({ team: null, limits: { week: 100 } });
  await expect(manage.findTeam({ team: team.id })).rejects.toThrow("There is no team");
  expect(await listTeams(manage, { organization })).toEqual([]);
  expect((await manage.createTeam({ organization, name: "interns" })).id).not.toBe(team.id);
});

test("every change stands in the audit log, from what to what", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "research", limits: { week: 900 } });
  await manage.updateTeam({ team: team.id, name: "science", limits: { week: 800, month: 5_000 } });
  const key = await manage.createKey({ organization, name: "app" });
  await manage.updateKeyBudget({ id: key.id, team: "science", limits: { session: 10 } });
  await manage.updateKeyDefault({ organization, limits: { month: 50 } });
  const { data: log } = await manage.pageAudit({ organization, limit: 6 });
  expect(log.map(({ action, subject, details }) => ({ action, subject, details }))).toMatchObject([
    { action: "organization.key_limits", details: { limits: { month: 50 }, before: null } },
    {
      action: "key.budget",
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
    () => manage.updateKeyBudget({ id: key.id, limits: above }),
    () => manage.updateKeyDefault({ organization, limits: above }),
  ])
    await expect(work()).rejects.toThrow("of 1,001 is above that of the plan 'pro', 1,000.");
  for (const limits of [{ week: -1 }, { week: 0 }, { week: 0.5 }, { day: 5 }, ["week"], "week"] as never[])
    await expect(manage.updateKeyBudget({ id: key.id, limits })).rejects.toThrow(/limit/);
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
  const listed = await allOf((page) => manage.pageKeyBudgets({ organization, ...page, limit: 2 }));
  expect(listed.map(({ name }) => name)).toEqual(["limited", "plain", "member"]);
  for (const key of listed) expect(key).toEqual(await manage.findKeyBudget({ id: key.id }));
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
