// What a list of organizations and a key's budget show, whoever asks and whatever was done before.
import { expect, setDefaultTimeout, test } from "bun:test";
import { worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(60_000);
const world = worldForTests();

test("filters of organizations count for those who see one alone, too", async () => {
  for (const who of ["organization-admin", "operator organization-admin"] as const) {
    const manage = actingAs(world.db, callersIn(world)[who]);
    const found = async (filter: Parameters<typeof manage.pageOrganizations>[0]) =>
      (await manage.pageOrganizations(filter)).data.map(({ slug }) => slug);
    expect(await found({})).toEqual(["acme"]);
    expect(await found({ status: "active", plan: "starter" })).toEqual(["acme"]);
    expect(await found({ status: "suspended" })).toEqual([]);
    expect(await found({ plan: "pro" })).toEqual([]);
    expect(await found({ over: 1 })).toEqual([]);
    expect(await found({ cursor: world.acme })).toEqual([]);
  }
});

test("a team that was removed stays out of a key's budget when the limits of its person change", async () => {
  const { manage, teams, people, keys } = world;
  const teamOf = async (id: string) => (await manage.findKey({ id })).team;
  expect(await teamOf(keys.key)).toEqual({ id: teams.research, name: "research" });
  await manage.removeTeam({ team: teams.research });
  expect(await teamOf(keys.key)).toBeNull();
  await manage.updatePersonLimits({ person: people.ann, organization: "acme", own: { week: "100" } });
  expect(await teamOf(keys.key)).toBeNull();
  await manage.giveMembership({ person: people.ann, organization: "acme", role: "member", team: "support" });
  expect(await teamOf(keys.key)).toEqual({ id: teams.support, name: "support" });
  await manage.takeMembership({ person: people.ann, organization: "acme" });
  expect(await teamOf(keys.key)).toBeNull();
});
