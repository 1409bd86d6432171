// No act of a person raises a limit that applies to that person (docs/access.md, Limits of one's own): the acts of an
// organization's administrator that would do so are refused without effect, and similar acts succeed.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { SubjectLimitsShown } from "../../../src/admin/management/limit-shape.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { rolledBack } from "../../stores/postgres/rolled-back.ts";
import { actingAs, callersIn, inside, keysOf, type OwnWorld, ownWorld, type World } from "./world.ts";

setDefaultTimeout(60_000);
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
const later = new Date(Date.now() + 2 * 86_400_000).toISOString();
let world: OwnWorld;
let leasKey: string;
let leasToken: string;
beforeAll(async () => {
  world = await ownWorld();
  const { manage, teams, people } = world;
  await manage.updateOrganizationLimits({ organization: "acme", members: { week: "1000", month: "4000" } });
  await manage.updateOrganizationLimits({ organization: "acme", keys: { week: "500" } });
  await manage.updateTeamLimits({ team: teams.research, own: { week: "5000" } });
  const keys = await keysOf(world.db, people.lea, world.acme, teams.research);
  [leasKey, leasToken] = [keys.key, keys.jwt];
  await manage.updateKeyLimits({ id: leasKey, own: { week: "400" } });
});
afterAll(() => world.drop());

/** The limits that apply to a person, as an administrator reads them. */
async function counting(manage: Management, person: string) {
  const { memberships } = await manage.findPerson({ person });
  const team = memberships[0]?.team?.id;
  const key = await manage.findKey({ id: leasKey });
  const of = ({ inForce, models, raises }: SubjectLimitsShown) => ({ inForce, models, raises });
  return {
    person: of(await manage.findPersonLimits({ person, organization: "acme" })),
    team: team ? of(await manage.findTeamLimits({ team })) : null,
    newKeys: (await manage.findOrganizationLimits({ organization: "acme" })).keys,
    key: { team: key.team, ...of(await manage.findKeyLimits({ id: leasKey })) },
    token: (await manage.findKey({ id: leasToken })).team,
  };
}

type Acting = (manage: Management, world: World) => Promise<unknown>;

/** Runs `act` as Lea in a world that is restored afterwards, after somebody else has run `first`. */
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
  manage.updatePersonLimits({
    person: people.lea,
    organization: "acme",
    raise: { limits: { week: "2000" }, until: tomorrow },
  });
const ofModels: Acting = (manage, { people }) =>
  manage.updatePersonLimits({ person: people.lea, organization: "acme", models: { "acme/*": { week: "9" } } });
const ownLimits: Acting = (manage, { people }) =>
  manage.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: "10" } });

describe("an organization's administrator is refused", () => {
  const cases: [string, Acting, Acting?][] = [
    [
      "a higher limit of members",
      (m) => m.updateOrganizationLimits({ organization: "acme", members: { week: "2000" } }),
    ],
    ["no limit of members", (m) => m.updateOrganizationLimits({ organization: "acme", members: { week: null } })],
    [
      "her own limits, higher",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: "1001" } }),
    ],
    [
      "no limit of her own, whatever members get",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: "none" } }),
    ],
    [
      "her own limits taken away, so that those of members count again",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: null } }),
      ownLimits,
    ],
    ["a raise of her own", raisedPerson],
    [
      "a raise of her own that lasts longer",
      (m, { people }) =>
        m.updatePersonLimits({
          person: people.lea,
          organization: "acme",
          raise: { limits: { week: "2000" }, until: later },
        }),
      raisedPerson,
    ],
    [
      "her team's limits, higher",
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, own: { week: "6000" } }),
    ],
    ["no limit of her team", (m, { teams }) => m.updateTeamLimits({ team: teams.research, own: { week: null } })],
    [
      "no limit of her team's members, whatever the organization gives",
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, members: { month: "none" } }),
    ],
    [
      "a raise of her team",
      (m, { teams }) =>
        m.updateTeamLimits({ team: teams.research, raise: { limits: { week: "6000" }, until: tomorrow } }),
    ],
    ["the removal of her team", (m, { teams }) => m.removeTeam({ team: teams.research })],
    [
      "the removal of her team whose members had less",
      (m, { teams }) => m.removeTeam({ team: teams.research }),
      (m, { teams }) =>
        m.updateTeamLimits({ team: teams.research, own: { week: null }, members: { week: "10", month: "10" } }),
    ],
    ["her key's limits, higher", (m) => m.updateKeyLimits({ id: leasKey, own: { week: "401" } })],
    ["no limit of her key", (m) => m.updateKeyLimits({ id: leasKey, own: { week: null } })],
    ["her key out of her team", (m) => m.updateKey({ id: leasKey, team: null })],
    ["her key in another team", (m) => m.updateKey({ id: leasKey, team: "support" })],
    [
      "her key in another team with the same limits, which has used nothing yet",
      (m) => m.updateKey({ id: leasKey, team: "support" }),
      (m, { teams }) => m.updateTeamLimits({ team: teams.support, own: { week: "5000" } }),
    ],
    [
      "a raise of her key",
      (m) => m.updateKeyLimits({ id: leasKey, raise: { limits: { week: "600" }, until: tomorrow } }),
    ],
    [
      "a higher limit of her models",
      (m, { people }) =>
        m.updatePersonLimits({ person: people.lea, organization: "acme", models: { "acme/*": { week: "10" } } }),
      ofModels,
    ],
    [
      "no limit of her models any more",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", models: { "acme/*": null } }),
      ofModels,
    ],
    [
      "a raise of her models",
      (m, { people }) => {
        const raise = { models: "acme/*", limits: { week: "10" }, until: tomorrow };
        return m.updatePersonLimits({ person: people.lea, organization: "acme", raise });
      },
      ofModels,
    ],
    [
      "a higher limit of her team's models",
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, models: { "acme/writer-1": { week: "10" } } }),
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, models: { "acme/writer-1": { week: "9" } } }),
    ],
    ["higher limits of new keys", (m) => m.updateOrganizationLimits({ organization: "acme", keys: { week: "501" } })],
    [
      "higher limits of her team's new keys",
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, keys: { week: "501" } }),
    ],
    [
      "a new key of her own with more than new keys get",
      (m, { people }) =>
        m.createKey({ organization: "acme", name: "more", person: people.lea, limits: { week: "501" } }),
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
    [
      "her own limits that leave out what members get, which counts still",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: "900" } }),
    ],
    [
      "a limit of her models, where there was none",
      (m, { people }) =>
        m.updatePersonLimits({ person: people.lea, organization: "acme", models: { "acme/*": { week: "9" } } }),
    ],
    ["lower limits of members", (m) => m.updateOrganizationLimits({ organization: "acme", members: { week: "900" } })],
    [
      "higher limits of members, where she has her own",
      (m) => m.updateOrganizationLimits({ organization: "acme", members: { week: "2000" } }),
      ownLimits,
    ],
    [
      "her own limits, lower",
      (m, { people }) =>
        m.updatePersonLimits({ person: people.lea, organization: "acme", own: { week: "900", month: "4000" } }),
    ],
    [
      "the end of a raise of her own",
      (m, { people }) => m.updatePersonLimits({ person: people.lea, organization: "acme", raise: null }),
      raisedPerson,
    ],
    ["her team's limits, lower", (m, { teams }) => m.updateTeamLimits({ team: teams.research, own: { week: "4000" } })],
    ["her team's name", (m, { teams }) => m.updateTeam({ team: teams.research, name: "science" })],
    ["another team's limits", (m, { teams }) => m.updateTeamLimits({ team: teams.support, own: { week: "9000" } })],
    ["the removal of another team", (m, { teams }) => m.removeTeam({ team: teams.support })],
    [
      "the removal of her team, which limited nothing",
      (m, { teams }) => m.removeTeam({ team: teams.research }),
      (m, { teams }) => m.updateTeamLimits({ team: teams.research, own: { week: null } }),
    ],
    [
      "somebody else's limits",
      (m, { people }) => m.updatePersonLimits({ person: people.ann, organization: "acme", own: { week: "9000" } }),
    ],
    ["somebody else's key", (m, { keys }) => m.updateKeyLimits({ id: keys.key, own: { week: "9000" } })],
    ["her key's limits, lower", (m) => m.updateKeyLimits({ id: leasKey, own: { week: "399" } })],
    ["the end of her key", (m) => m.revokeKey({ id: leasKey })],
    ["a rotation of her key", (m) => m.rotateKey({ id: leasKey })],
    [
      "a new key of her own",
      (m, { people }) => m.createKey({ organization: "acme", name: "more", person: people.lea }),
    ],
    [
      "a key of the organization, which counts for nobody",
      (m) => m.createKey({ organization: "acme", name: "build", limits: { week: "9000" } }),
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
      const set = await manage.updateOrganizationLimits({ organization: "acme", members: { week: "2000" } });
      expect(set.members?.week).toEqual({ amount: "2000.000000000", currency: "USD" });
    });
});

test("of two who act at once, the one for whom it counts raises nothing over the other's lower limit", async () => {
  const { db } = world;
  const lea = actingAs(db, callersIn(world)["organization-admin"]);
  for (let round = 0; round < 5; round++) {
    await world.manage.updateOrganizationLimits({ organization: "acme", members: { week: "1000" } });
    await Promise.allSettled([
      world.manage.updateOrganizationLimits({ organization: "acme", members: { week: "50" } }),
      lea.updateOrganizationLimits({ organization: "acme", members: { week: "500" } }),
    ]);
    const { members } = await world.manage.findOrganizationLimits({ organization: "acme" });
    expect(members?.week).toMatchObject({ amount: "50.000000000" });
  }
});
