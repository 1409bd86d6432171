// Reports that are limited to a team, a person, a key or a model, by callers with and without access to everything.
import { expect, setDefaultTimeout, test } from "bun:test";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { admitOf, settleOf } from "../../core/store/ledger-stores.ts";
import { nanosOf } from "../../harness/money.ts";
import { actingIn, codeOf, type Who, worldForTests } from "./own-world.ts";
import { actingAs, callersIn, newPerson, type World } from "./world.ts";

setDefaultTimeout(60_000);
let bobs: string;
const world = worldForTests(async ({ db, ...made }) => {
  const book = ledger(db, { recovery: "checkpoint" });
  const { manage, people, keys, acme, globex, teams } = made;
  bobs = (await manage.createKey({ organization: "acme", name: "bob's", person: people.bob })).id;
  const teamKey = (await manage.createKey({ organization: "acme", name: "agents", team: teams.research })).id;
  const strangers = (await manage.createKey({ organization: "globex", name: "other" })).id;
  for (const [organization, keyId, nanos, model] of [
    [acme, keys.key, 1, "acme/writer-1"],
    [acme, keys.key, 20, "acme/painter-1"],
    [acme, bobs, 300, "acme/writer-1"],
    [acme, teamKey, 4000, "acme/writer-1"],
    [globex, strangers, 50_000, "acme/writer-1"],
  ] as const) {
    const admit = admitOf(organization, { keyId, model, inputNanos: 100_000 });
    await book.run([admit]);
    await book.run([settleOf(admit, nanos)]);
  }
  await book.close();
});

type Filter = NonNullable<Parameters<World["manage"]["reportUsage"]>[0]>;

async function used(who: Who, filter: Filter): Promise<number | string> {
  try {
    const { total } = await actingAs(world.db, callersIn(world)[who]).reportUsage(filter);
    return nanosOf(total.cost.total);
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test("adds up what the filters have in common", async () => {
  const { people, keys, teams } = world;
  const cases: [Filter, number][] = [
    [{}, 54_321],
    [{ model: "acme/painter-1" }, 20],
    [{ key: keys.key }, 21],
    [{ person: people.ann }, 21],
    [{ person: people.ann, model: "acme/writer-1" }, 1],
    [{ person: people.lea }, 0],
    // Ann is in the team, so her requests are included.
    [{ team: "research", organization: "acme" }, 4021],
    [{ team: teams.research, key: keys.key }, 21],
    [{ model: "none/such" }, 0],
  ];
  for (const [filter, nanos] of cases)
    expect({ filter, nanos: await used("admin", filter) }).toEqual({ filter, nanos });
});

test("finds for nobody what they do not see", async () => {
  const { people, keys, teams } = world;
  const cases: [Who, Filter, number | string][] = [
    ["member", {}, 21],
    ["member", { model: "acme/writer-1" }, 1],
    ["member", { person: people.bob }, "resource_not_found"],
    ["member", { key: bobs }, "resource_not_found"],
    ["member", { team: teams.research }, 21],
    ["organization-admin", {}, 4321],
    ["organization-admin", { person: people.gus }, "resource_not_found"],
    ["organization-admin elsewhere", { team: teams.research }, "resource_not_found"],
    ["organization-admin elsewhere", { key: keys.key }, "resource_not_found"],
    ["organization-admin elsewhere", { person: people.ann }, "resource_not_found"],
    ["organization-admin elsewhere", { model: "acme/writer-1" }, 50_000],
  ];
  for (const [who, filter, nanos] of cases)
    expect({ who, filter, nanos: await used(who, filter) }).toEqual({ who, filter, nanos });
});

test("keeps the largest groups, and adds up the others by day", async () => {
  const { rows, total } = await world.manage.reportUsage({ by: "key,day", groups_max: 2 });
  const shown = rows.map(({ key, others, day, cost }) => [others ? "others" : key, day?.length, nanosOf(cost.total)]);
  expect(shown).toEqual([
    ["other", 10, 50_000],
    ["agents", 10, 4000],
    ["others", 10, 321],
  ]);
  expect(nanosOf(total.cost.total)).toBe(54_321);
  expect(await used("admin", { by: "key", groups_max: 2, largest: 2 })).toBe("invalid_value");
});

test("the models that a member is told are those that the membership allows", async () => {
  const listed = async (who: "admin" | "member") =>
    (await actingAs(world.db, callersIn(world)[who]).listModels()).data.map(({ id }) => id);
  expect(await listed("member")).toEqual(["acme/writer-1"]);
  await newPerson(world.db, "ann", { role: "member", organization: "acme", models: ["acme/painter-1"] });
  expect(await listed("member")).toEqual([]);
  expect(await listed("admin")).toEqual(["acme/writer-1"]);
});

test("what a removed team and people who left have used is found by their IDs, where it was used", async () => {
  const { people, teams, db } = world;
  const { root, lea, bob } = actingIn(world);
  await root.removeTeam({ team: teams.research });
  const ofTeam = { team: teams.research };
  expect([await used("admin", ofTeam), await used("organization-admin", ofTeam)]).toEqual([4021, 4021]);
  expect((await lea.pageRequests(ofTeam)).data).toHaveLength(3);
  expect(await used("admin", { team: "research", organization: "acme" })).toBe("resource_not_found");
  expect(await codeOf(root.findTeam(ofTeam))).toBe("resource_not_found");
  expect(await used("organization-admin elsewhere", ofTeam)).toBe("resource_not_found");

  const ofAnn = { person: people.ann };
  await newPerson(db, "ann", { role: "member" }, { memberships: [] });
  expect(await used("organization-admin", ofAnn)).toBe(21);
  // When a membership that an administrator gave is taken away, no row is left. Deleting the row simulates that.
  await db.query("delete from membership where person_id = $1", [people.ann.slice("per_".length)]);
  expect(await used("organization-admin", ofAnn)).toBe(21);
  expect((await lea.pageRequests(ofAnn)).data).toHaveLength(2);
  expect(await codeOf(lea.findPerson(ofAnn))).toBe("resource_not_found");
  expect(await codeOf(bob.reportUsage(ofAnn))).toBe("resource_not_found");
  expect(await used("organization-admin elsewhere", ofAnn)).toBe("resource_not_found");
});
