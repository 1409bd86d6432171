/**
 * Standings: the use that organizations, teams and keys have made of their limits, from the one query behind all views.
 */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { bare } from "../../../src/core/store/ids.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { tightestWindow } from "../../../src/features/telemetry/store/standing.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, ledgerForTests, noon, settleOf, unlimited } from "./ledger-stores.ts";
import { addKey, addTeam } from "./made.ts";
import { limitModels } from "./model-limits.ts";

setDefaultTimeout(60_000);

const limits = { ...unlimited, week: 10_000 };

describe.each(databaseKinds(import.meta.path))("standings on %s", (name) => {
  const { store, book } = ledgerForTests(name, { isBalanced: false });
  let acts: ReturnType<typeof administration>;
  beforeAll(async () => {
    await store.setClock(noon);
    await plans(store.db).publish([{ ...noLimits, name: "test", week: limits.week }], 0);
    acts = administration(store.db);
  });

  async function newKey(organizationId: string, budget: Partial<Budget>, teamId: string | null = null) {
    return (await addKey(store.db, organizationId, { teamId, limits: { ...noBudget, ...budget } })).id;
  }
  async function newTeam(organizationId: string, budget: Partial<Budget>) {
    return (await addTeam(store.db, organizationId, { limits: { ...noBudget, ...budget } })).id;
  }
  async function use(organizationId: string, keyId: string, nanos: number) {
    const change = { keyId, limits, inputNanos: nanos, outputTokens: 0, outputTokens_min: 0 };
    const admit = admitOf(organizationId, change);
    expect(await book.run([admit])).toMatchObject([{ answer: "granted" }]);
    return { settle: () => book.run([settleOf(admit, nanos)]), requestId: admit.requestId };
  }

  test("equal what admission and the receipts say, of the organization, the team and the key", async () => {
    const organization = await store.newOrganization();
    const team = await newTeam(organization, { week: 1_000, concurrentRequests: 4 });
    const [key, mate] = [
      await newKey(organization, { session: 2_000, month: 600 }, team),
      await newKey(organization, {}, team),
    ];
    const free = await newKey(organization, {});
    const ended = [
      await use(organization, key, 300),
      await use(organization, mate, 500),
      await use(organization, free, 7),
    ];
    for (const one of ended) await one.settle();
    await use(organization, key, 50);

    const found = await acts.standings([organization, team, key, mate, free]);
    expect([...found.keys()].sort()).toEqual([organization, team, key].sort());
    const [ofKey, ofTeam] = await book.budgets(organization, key);
    const { subject: _key, ...keyReading } = ofKey!;
    const { subject: _team, ...teamReading } = ofTeam!;
    expect(found.get(key)).toEqual({ id: key, organizationId: organization, at: noon, ...keyReading });
    expect(found.get(team)).toEqual({ id: team, organizationId: organization, at: noon, ...teamReading });
    const { windows, running, at } = await book.reading(organization, limits);
    expect(found.get(organization)).toEqual({
      ...{ id: organization, organizationId: organization, windows, running, at },
      concurrentRequests: null,
    });

    const charged = await Promise.all(
      ended.map(async ({ requestId }) => (await book.receipt(organization, requestId))!.nanos.charged),
    );
    expect(found.get(organization)!.windows.week).toMatchObject({
      used: charged[0]! + charged[1]! + charged[2]!,
      held: 50,
    });
    expect(found.get(team)!.windows.week).toMatchObject({ used: charged[0]! + charged[1]!, held: 50, limit: 1_000 });
    expect(found.get(key)!.windows.session).toMatchObject({ used: charged[0]!, held: 50, limit: 2_000 });
    expect(found.get(team)).toMatchObject({ running: 1, concurrentRequests: 4 });
    expect(tightestWindow(found.get(team)!)).toEqual({ kind: "week", percent: 80 });
    expect(tightestWindow(found.get(key)!)).toEqual({ kind: "month", percent: 50 });

    // After the session's end, the use in the session is zero, but the week still counts it.
    await store.setClock(new Date(noon.getTime() + 6 * 3_600_000));
    const later = (await acts.standings([key])).get(key)!;
    expect(later.windows).toMatchObject({ session: { used: 0 }, week: { used: 300 } });
    await store.setClock(noon);
  });

  test("narrow lists to what has used so much of a limit, to the unit, page by page", async () => {
    const organization = await store.newOrganization();
    const team = await newTeam(organization, { month: 1_000 });
    const keys = [];
    for (const nanos of [799, 800, 801, 1_000]) {
      const key = await newKey(organization, { week: 1_000 });
      await (await use(organization, key, nanos)).settle();
      keys.push(key);
    }
    await (await use(organization, await newKey(organization, {}, team), 999)).settle();
    const over = (percent: number, page: { limit: number; after?: string } = { limit: 100 }) =>
      acts.pageKeys({ ...page, overPercent: percent, organizationId: organization });
    const ids = async (percent: number) => (await over(percent)).items.map(({ id }) => id);
    expect(await ids(80)).toEqual(keys.slice(1));
    expect(await ids(81)).toEqual(keys.slice(3));
    expect(await ids(100)).toEqual(keys.slice(3));
    const first = await over(80, { limit: 2 });
    expect([first.items.map(({ id }) => id), first.hasMore]).toEqual([keys.slice(1, 3), true]);
    const rest = await over(80, { limit: 2, after: keys[2]! });
    expect([rest.items.map(({ id }) => id), rest.hasMore]).toEqual([keys.slice(3), false]);
    const teams = (percent: number) =>
      acts.pageTeams({ limit: 100, overPercent: percent, organizationId: organization });
    expect((await teams(99)).items.map(({ id }) => id)).toEqual([team]);
    expect((await teams(100)).items).toEqual([]);
    // The organization has used 4,399 of 10,000.
    const owners = async (percent: number) =>
      (await acts.pageOrganizations({ limit: 100, overPercent: percent })).items.map(({ id }) => id);
    expect(await owners(43)).toEqual([organization]);
    expect(await owners(44)).toEqual([]);
  });

  test("are listed the nearest to a limit first", async () => {
    const nearest = await acts.nearest("organization", 2);
    expect(nearest.map((one) => tightestWindow(one)!.percent)).toEqual([43.99, 8.07]);
    expect((await acts.nearest("key", 1)).map((one) => tightestWindow(one))).toEqual([{ kind: "week", percent: 100 }]);
    expect(await acts.nearest("team", 9)).toHaveLength(2);
    const near = await acts.nearLimits();
    expect(near.map(({ subject, percent, count }): unknown => [subject, percent, count])).toEqual([
      ...[50, 80, 95, 100].map((percent, place) => ["key", percent, [5, 3, 1, 1][place]!]),
      ...[50, 80, 95, 100].map((percent) => ["organization", percent, 0]),
      ...[50, 80, 95, 100].map((percent) => ["person", percent, 0]),
      ...[50, 80, 95, 100].map((percent, place) => ["team", percent, [2, 2, 1, 0][place]!]),
    ]);
  });

  test("count who is near a limit for models once, by all of its limits, and name the models", async () => {
    const organization = await store.newOrganization();
    const [key, near] = [await newKey(organization, {}), await newKey(organization, { week: 1_000 })];
    const before = await acts.nearLimits();
    const [owner, pattern] = [bare(organization, "org_"), "acme/*"];
    for (const one of [key, near]) await limitModels(store.db, owner, bare(one, "key_"), pattern, { week: 1_000 });
    await limitModels(store.db, owner, owner, pattern, { month: 2_000 });
    await (await use(organization, near, 960)).settle();
    await (await use(organization, key, 850)).settle();
    const { items } = await acts.pageKeys({ limit: 100, overPercent: 80, organizationId: organization });
    expect(items.map(({ id }) => id)).toEqual([key, near]);
    const { items: owners } = await acts.pageOrganizations({ limit: 100, overPercent: 90 });
    expect(owners.map(({ id }) => id)).toEqual([organization]);
    const [first] = await acts.nearest("organization", 1);
    expect(first).toMatchObject({ id: organization, models: pattern });
    expect(tightestWindow(first!)).toEqual({ kind: "month", percent: 90.5 });
    const after = await acts.nearLimits();
    const more = after.map(({ subject, percent, count }, place): unknown => [
      subject,
      percent,
      count - before[place]!.count,
    ]);
    expect(more.filter((one) => (one as unknown[])[2] !== 0)).toEqual([
      ["key", 50, 2],
      ["key", 80, 2],
      ["key", 95, 1],
      ["organization", 50, 1],
      ["organization", 80, 1],
    ]);
  });

  test("no longer count a key that was revoked", async () => {
    const organization = await store.newOrganization();
    const key = await newKey(organization, { week: 1_000 });
    const keysNear = async () =>
      (await acts.nearLimits()).find(({ subject, percent }) => subject === "key" && percent === 80);
    const before = await keysNear();
    await (await use(organization, key, 900)).settle();
    expect(await keysNear()).not.toEqual(before);
    await acts.revokeKey({ id: key, old: false, actor: "cli:test" });
    expect(await keysNear()).toEqual(before);
    expect((await acts.nearest("key", 100)).map(({ id }) => id)).not.toContain(key);
  });

  test("no longer count a team that was removed, by its limits for models either", async () => {
    const organization = await store.newOrganization();
    const team = await newTeam(organization, {});
    const key = await newKey(organization, {}, team);
    await limitModels(store.db, bare(organization, "org_"), bare(team, "team_"), "acme/*", { week: 1_000 });
    const near = async () => (await acts.nearLimits()).map(({ subject, count }) => (subject === "team" ? count : 0));
    const before = await near();
    await (await use(organization, key, 900)).settle();
    expect(await near()).not.toEqual(before);
    await acts.removeTeam(team, "cli:test");
    expect(await near()).toEqual(before);
  });
});
