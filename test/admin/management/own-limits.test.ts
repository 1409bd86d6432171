// No act of a person raises what counts for that person (docs/access.md, Limits of one's own): the acts of an organization's
// administrator that would, each refused and without effect, and their neighbours, which go through.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { rolledBack } from "../../../src/stores/postgres/database.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { actingAs, callersIn, inside, keysOf, newWorld, type World } from "./world.ts";

setDefaultTimeout(60_000);
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
const later = new Date(Date.now() + 2 * 86_400_000).toISOString();
let world: World;
let leasKey: string;
let leasToken: string;
let drop: () => Promise<void>;
beforeAll(async () => {
  const owned = await openDatabase();
  drop = owned.drop;
  world = await newWorld(owned.db);
  const { manage, teams, people } = world;
  await manage.updateMemberDefault({ organization: "acme", limits: { week: 1_000, month: 4_000 } });
  await manage.updateKeyDefault({ organization: "acme", limits: { week: 500 } });
  await manage.updateTeam({ team: teams.research, limits: { week: 5_000 } });
  const keys = await keysOf(owned.db, people.lea, world.acme, teams.research);
  [leasKey, leasToken] = [keys.key, keys.jwt];
  await manage.updateKeyBudget({ id: leasKey, limits: { week: 400 } });
});
afterAll(() => drop());

/** What counts for somebody, as an administrator reads it. */
async function counting(manage: Management, person: string) {
  const { limits, memberships } = await manage.findPerson({ person });
  const team = memberships[0]?.team?.id;
  return {
    person: limits.map(({ limits, raise }) => ({ limits, raise })),
    team: team ? await manage.findTeam({ team }).then(({ limits, raise }) => ({ limits, raise })) : null,
    newKeys: (await manage.findKeyDefault({ organization: "acme" })).limits,
    key: await manage.findKeyBudget({ id: leasKey }).then(({ limits, team, raise }) => ({ limits, team, raise })),
    token: (await manage.findKeyBudget({ id: leasToken })).team,
  };
}

type Acting = (manage: Management, world: World) => Promise<unknown>;

/** Acts as Lea in a world that is as before afterwards; `first` is done by somebody else. */
async function tried(act: Acting, first: Acting = async () => {}) {
  let seen: { code: string; message: string; before: unknown; after: unknown } | undefined;
  await rolledBack(world.db.transaction, async (tx) => {
    const db = inside(world.db, tx);
    const root = actingAs(db, callersIn(world)["command line"]);
    await first(root, world);
    const before = await counting(root, world.people.lea);
    const refused = await act(actingAs(db, callersIn(world)["organization-admin"]), world).then(
      () => null,
      (error) => error as { code: string; message: string },
    );
    seen = { code: "done", message: "", before, after: await counting(root, world.people.lea) };
    if (refused) Object.assign(seen, { code: refused.code, message: refused.message });
  });
  return seen!;
}

const raisedPerson: Acting = (manage, { people }) =>
  manage.raisePerson({ person: people.lea, organization: "acme", limits: { week: 2_000 }, until: tomorrow });
const ownLimits: Acting = (manage, { people }) =>
  manage.updatePersonLimits({ person: people.lea, organization: "acme", limits: { week: 10 } });

describe("an organization's administrator is refused", () => {
  const cases: [string, Acting, Acting?][] = [
    ["a higher limit of members", (m) => m.updateMemberDefault({ organization: "acme", limits: { week: 2_000 } })],
    ["no limit of members", (m) => m.updateMemberDefault({ organization: "acme", limits: { week: null } })],
    [
      "her own limits, higher",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", limits: { week: 1_001 } }),
    ],
    [
      "her own limits that leave out what counted by default",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", limits: { week: 900 } }),
    ],
    [
      "her own limits taken away, so that those of members count again",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", limits: { week: null } }),
      ownLimits,
    ],
    ["a raise of her own", raisedPerson],
    [
      "a raise of her own that lasts longer",
      (m, { people }) =>
        m.raisePerson({ person: people.lea, organization: "acme", limits: { week: 2_000 }, until: later }),
      raisedPerson,
    ],
    ["her team's limits, higher", (m, { teams }) => m.updateTeam({ team: teams.research, limits: { week: 6_000 } })],
    ["no limit of her team", (m, { teams }) => m.updateTeam({ team: teams.research, limits: { week: null } })],
    [
      "limits of her team's members in the place of the organization's",
      (m, { teams }) => m.updateTeam({ team: teams.research, memberLimits: { week: 900 } }),
    ],
    [
      "a raise of her team",
      (m, { teams }) => m.raiseTeam({ team: teams.research, limits: { week: 6_000 }, until: tomorrow }),
    ],
    ["the removal of her team", (m, { teams }) => m.removeTeam({ team: teams.research })],
    [
      "the removal of her team whose members had less",
      (m, { teams }) => m.removeTeam({ team: teams.research }),
      (m, { teams }) =>
        m.updateTeam({ team: teams.research, limits: { week: null }, memberLimits: { week: 10, month: 10 } }),
    ],
    ["her key's limits, higher", (m) => m.updateKeyBudget({ id: leasKey, limits: { week: 401 } })],
    ["no limit of her key", (m) => m.updateKeyBudget({ id: leasKey, limits: { week: null } })],
    ["her key out of her team", (m) => m.updateKeyBudget({ id: leasKey, team: null })],
    ["her key in another team", (m) => m.updateKeyBudget({ id: leasKey, team: "support" })],
    [
      "her key in another team with the same limits, which has used nothing yet",
      (m) => m.updateKeyBudget({ id: leasKey, team: "support" }),
      (m, { teams }) => m.updateTeam({ team: teams.support, limits: { week: 5_000 } }),
    ],
    ["a raise of her key", (m) => m.raiseKey({ id: leasKey, limits: { week: 600 }, until: tomorrow })],
    ["higher limits of new keys", (m) => m.updateKeyDefault({ organization: "acme", limits: { week: 501 } })],
    [
      "higher limits of her team's new keys",
      (m, { teams }) => m.updateTeam({ team: teams.research, keyLimits: { week: 501 } }),
    ],
    [
      "a new key of her own with more than new keys get",
      (m, { people }) =>
        m.createKey({ organization: "acme", name: "more", person: people.lea, limits: { week: null } }),
    ],
  ];
  for (const [name, act, first] of cases)
    test(name, async () => {
      const { code, message, before, after } = await tried(act, first);
      expect({ code, after }).toEqual({ code: "wrong_state", after: before });
      expect(message).toContain("counts for you");
    });
});

describe("and what does not raise what counts for her goes through", () => {
  const cases: [string, Acting, Acting?][] = [
    ["lower limits of members", (m) => m.updateMemberDefault({ organization: "acme", limits: { week: 900 } })],
    [
      "higher limits of members, where she has her own",
      (m) => m.updateMemberDefault({ organization: "acme", limits: { week: 2_000 } }),
      ownLimits,
    ],
    [
      "her own limits, lower",
      (m, { people }) =>
        m.updatePersonLimits({ person: people.lea, organization: "acme", limits: { week: 900, month: 4_000 } }),
    ],
    [
      "the end of a raise of her own",
      (m, { people }) => m.raisePerson({ person: people.lea, organization: "acme", end: true }),
      raisedPerson,
    ],
    ["her team's limits, lower", (m, { teams }) => m.updateTeam({ team: teams.research, limits: { week: 4_000 } })],
    ["her team's name", (m, { teams }) => m.updateTeam({ team: teams.research, name: "science" })],
    ["another team's limits", (m, { teams }) => m.updateTeam({ team: teams.support, limits: { week: 9_000 } })],
    ["the removal of another team", (m, { teams }) => m.removeTeam({ team: teams.support })],
    [
      "the removal of her team, which limited nothing",
      (m, { teams }) => m.removeTeam({ team: teams.research }),
      (m, { teams }) => m.updateTeam({ team: teams.research, limits: { week: null } }),
    ],
    [
      "somebody else's limits",
      (m, { people }) => m.updatePersonLimits({ person: people.ann, organization: "acme", limits: { week: 9_000 } }),
    ],
    ["somebody else's key", (m, { keys }) => m.updateKeyBudget({ id: keys.key, limits: { week: 9_000 }, team: null })],
    ["her key's limits, lower", (m) => m.updateKeyBudget({ id: leasKey, limits: { week: 399 } })],
    ["the end of her key", (m) => m.revokeKey({ id: leasKey })],
    ["a rotation of her key", (m) => m.rotateKey({ id: leasKey })],
    [
      "a new key of her own",
      (m, { people }) => m.createKey({ organization: "acme", name: "more", person: people.lea }),
    ],
    [
      "a key of the organization, which counts for nobody",
      (m) => m.createKey({ organization: "acme", name: "build", limits: { week: 9_000 } }),
    ],
  ];
  for (const [name, act, first] of cases)
    test(name, async () => {
      expect(await tried(act, first)).toMatchObject({ code: "done", message: "" });
    });
});

test("the service's administrators, operators and the command line are not bound by it", async () => {
  for (const who of ["admin", "operator organization-admin", "command line"] as const)
    await rolledBack(world.db.transaction, async (tx) => {
      const manage = actingAs(inside(world.db, tx), callersIn(world)[who]);
      expect((await manage.updateMemberDefault({ organization: "acme", limits: { week: 2_000 } })).limits?.week).toBe(
        2_000,
      );
    });
});

test("of two who act at once, the one for whom it counts raises nothing over the other's lower limit", async () => {
  const { db } = world;
  const lea = actingAs(db, callersIn(world)["organization-admin"]);
  for (let round = 0; round < 5; round++) {
    await world.manage.updateMemberDefault({ organization: "acme", limits: { week: 1_000 } });
    await Promise.allSettled([
      world.manage.updateMemberDefault({ organization: "acme", limits: { week: 50 } }),
      lea.updateMemberDefault({ organization: "acme", limits: { week: 500 } }),
    ]);
    const { limits } = await world.manage.findMemberDefault({ organization: "acme" });
    expect(limits?.week).toBe(50);
  }
});
