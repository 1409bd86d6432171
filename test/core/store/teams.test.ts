// Teams and limits as an administrator sets them: two changes at once, teams that were removed, and the entries of the
// audit log.

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { management } from "../../../src/admin/management/client.ts";
import type { LimitValueChanges } from "../../../src/admin/management/limit-shape.ts";
import { allOf } from "../../../src/admin/management/page.ts";
import { hashKey } from "../../../src/core/auth/credential.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { emptyLedger } from "../../admin/management/empty-ledger.ts";
import { listKeys, listTeams } from "../../admin/management/lists.ts";
import { inMoney, inNanos } from "../../harness/limits.ts";
import { databaseForTests, openDatabase } from "../../stores/postgres/databases.ts";

const pro = { ...noLimits, name: "pro", week: 1_000 };
let organizations = 0;
setDefaultTimeout(60_000);
const db = databaseForTests(openDatabase);
beforeAll(async () => {
  await plans(db).publish([pro], 0);
});

async function setup() {
  const admin = administration(db);
  const manage = management({
    administration: admin,
    ...emptyLedger(),
    catalog: () => ({
      plans: new Map([["pro", pro]]),
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
  const limits = inMoney({ requestsPerMinute: 5, week: 900 });
  const team = await manage.createTeam({ organization, name: "interns", limits });
  await manage.updateTeamLimits({ team: team.id, keys: { tokensPerMinute: 70 } });
  const { key: secret, ...key } = await manage.createKey({ organization, name: "app", team: team.id });
  const known = async () => (await directory(db).credential(hashKey(secret!)))!.rates;
  const ofKey = { limitedBy: "key", id: key.id, limits: { requestsPerMinute: null, tokensPerMinute: 70 } };
  const ofTeam = { limitedBy: "team", id: team.id, limits: { requestsPerMinute: 5, tokensPerMinute: null } };
  expect(await known()).toEqual([ofKey, ofTeam] as never);
  await manage.updateKeyLimits({ id: key.id, own: { tokensPerMinute: "none", ...inMoney({ session: 800 }) } });
  expect(await known()).toEqual([ofTeam] as never);
  const [entry] = await admin.listAudit({ limit: 1 });
  expect(entry!.details).toMatchObject({
    own: { ...inMoney({ session: 800 }), tokens_per_minute: "none" },
    before: { own: {} },
  });
  await manage.removeTeam({ team: team.id });
  expect(await known()).toEqual([]);
});

test("of two changes at once both count, and one that names a version that is gone is refused", async () => {
  const { admin, manage, organization } = await setup();
  const key = await manage.createKey({ organization, name: "app", limits: inMoney({ week: 900 }) });
  const team = await manage.createTeam({ organization, name: "research" });
  type Changed = Promise<{ own: object; keys: object | null; members: object | null }>;
  const changes: ["own" | "keys" | "members", (value: LimitValueChanges) => Changed][] = [
    ["own", (own) => manage.updateKeyLimits({ id: key.id, own })],
    ["own", (own) => manage.updateTeamLimits({ team: team.id, own })],
    ["keys", (keys) => manage.updateOrganizationLimits({ organization, keys })],
    ["members", (members) => manage.updateOrganizationLimits({ organization, members })],
  ];
  for (const [field, change] of changes) {
    const set = (limits: Partial<Budget>) => change(inMoney(limits));
    await Promise.all([set({ week: 500 }), set({ month: 4_000 }), set({ session: 3 })]);
    expect(inNanos((await set({ week: 400 }))[field]! as never)).toEqual({ session: 3, week: 400, month: 4_000 });
  }
  await manage.updateKeyLimits({ id: key.id, own: inMoney({ week: 300 }) });
  const late = manage.updateKeyLimits({ id: key.id, version: key.version, own: inMoney({ week: 5_000 }) });
  await expect(late).rejects.toThrow(/^The key 'app' has version \d+ now, not 1: .*last change was key\.limits by /);
  const stale = await admin.updateTeam({ id: team.id, actor: "cli:bob", version: team.version }, () => ({ name: "x" }));
  expect(stale).toMatchObject({ stale: { name: "research" } });
  const { own } = await manage.findKeyLimits({ id: key.id });
  expect(inNanos(own)).toMatchObject({ week: 300, month: 4_000 });
});

test("a team that was removed is gone, its name is free, and its keys are in no team", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "interns" });
  await manage.updateTeamLimits({ team: team.id, keys: inMoney({ week: 100 }) });
  const key = await manage.createKey({ organization, name: "app", team: "interns" });
  const weekOf = async () => (await manage.findKeyLimits({ id: key.id })).inForce.week;
  expect(await weekOf()).toMatchObject({ limit: { amount: "0.000000100" }, from: "team" });
  expect(await manage.findTeam({ team: "interns", organization })).toMatchObject({ id: team.id, keys: 1 });
  expect((await manage.removeTeam({ team: team.id })).keys).toBe(1);
  expect(await manage.findKey({ id: key.id })).toMatchObject({ team: null });
  expect(await weekOf()).toEqual({ limit: null, from: null });
  await expect(manage.findTeam({ team: team.id })).rejects.toThrow("There is no team");
  expect(await listTeams(manage, { organization })).toEqual([]);
  expect((await manage.createTeam({ organization, name: "interns" })).id).not.toBe(team.id);
});

test("every change stands in the audit log, from what to what", async () => {
  const { manage, organization } = await setup();
  const team = await manage.createTeam({ organization, name: "research", limits: inMoney({ week: 900 }) });
  await manage.updateTeam({ team: team.id, name: "science" });
  await manage.updateTeamLimits({ team: team.id, own: inMoney({ week: 800, month: 5_000 }) });
  const key = await manage.createKey({ organization, name: "app" });
  await manage.updateKey({ id: key.id, team: "science" });
  const until = new Date(Date.now() + 60_000);
  await manage.updateTeamLimits({
    team: team.id,
    raise: { limits: inMoney({ week: 850 }), until: until.toISOString() },
  });
  await manage.updateOrganizationLimits({ organization, keys: { ...inMoney({ month: 50 }), session: "none" } });
  const { data: log } = await manage.pageAudit({ organization, limit: 8 });
  expect(log.map(({ action, subject, details }) => ({ action, subject, details }))).toMatchObject([
    {
      action: "organization.limits",
      details: { keys: { ...inMoney({ month: 50 }), session: "none" }, before: { keys: {} } },
    },
    { action: "team.limits", details: { raise: { limits: { week: "0.000000850" } }, before: { raise: null } } },
    { action: "key.update", subject: key.id, details: { team_id: team.id, before: { team_id: null } } },
    { action: "key.create", subject: key.id },
    {
      action: "team.limits",
      details: { own: inMoney({ week: 800, month: 5_000 }), before: { own: inMoney({ week: 900 }) } },
    },
    { action: "team.update", subject: team.id, details: { name: "science", before: { name: "research" } } },
    { action: "team.create", subject: team.id, details: { name: "research", limits: { week: "0.000000900" } } },
    { action: "organization.create" },
  ]);
});

test("a limit above the organization's is refused wherever it is given, and so is one that is no limit", async () => {
  const { manage, organization } = await setup();
  const above = inMoney({ week: 1_001 });
  const key = await manage.createKey({ organization, name: "app" });
  for (const work of [
    () => manage.createTeam({ organization, name: "a", limits: above }),
    () => manage.createKey({ organization, name: "a", limits: above }),
    () => manage.updateKeyLimits({ id: key.id, own: above }),
    () => manage.updateKeyLimits({ id: key.id, models: { "openai/*": above } }),
    () => manage.updateOrganizationLimits({ organization, keys: above }),
    () => manage.updateOrganizationLimits({ organization, members: above }),
  ])
    await expect(work()).rejects.toThrow("is above that of the organization");
  await manage.updateOrganizationLimits({ organization, own: inMoney({ week: 2_000 }) });
  await manage.updateKeyLimits({ id: key.id, own: above });
  const wrong = [
    { week: "-1" },
    { week: "0" },
    { week: "0.0000000001" },
    { week: "5EUR" },
    { day: "5" },
    ["week"],
    "week",
  ];
  for (const own of wrong as never[])
    await expect(manage.updateKeyLimits({ id: key.id, own })).rejects.toThrow(/limit|own/);
  expect(await listTeams(manage, { organization })).toEqual([]);
});

test("the list of keys with their limits says of each what the key itself says, in parts, of one organization", async () => {
  const { manage, organization } = await setup();
  const { manage: other, organization: elsewhere } = await setup();
  await other.createKey({ organization: elsewhere, name: "other", limits: inMoney({ week: 1 }) });
  await manage.createTeam({ organization, name: "interns" });
  await manage.createKey({ organization, name: "limited", limits: inMoney({ week: 900 }) });
  await manage.createKey({ organization, name: "plain" });
  const member = await manage.createKey({
    organization,
    name: "member",
    team: "interns",
    limits: inMoney({ month: 5 }),
  });
  const listed = await allOf((page) => manage.pageKeys({ organization, ...page, limit: 2 }));
  expect(listed.map(({ name }) => name)).toEqual(["limited", "plain", "member"]);
  for (const key of listed) expect(key).toEqual(await manage.findKey({ id: key.id }));
  expect(listed.at(-1)).toMatchObject({ id: member.id, team: { name: "interns" } });
  const limits = await allOf((page) => manage.findOrganizationLimits({ organization, of: "keys", ...page, limit: 2 }));
  expect(limits.map(({ own }) => inNanos(own))).toEqual([{ week: 900 }, {}, { month: 5 }]);
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
