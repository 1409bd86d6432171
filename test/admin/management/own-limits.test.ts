// No person can raise a limit that applies to that person (docs/access.md, Limits of one's own): actions of an
// organization's administrator that would do so are refused and change nothing, and similar actions succeed. The values
// to which each field of each subject can be set are tested in limit-rights.test.ts.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { SubjectLimitsShown } from "../../../src/admin/management/limit-shape.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { actingIn, apart, worldForTests } from "./own-world.ts";
import { keysOf } from "./world.ts";

setDefaultTimeout(60_000);
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
const later = new Date(Date.now() + 2 * 86_400_000).toISOString();
const acme = { organization: "acme" };
let leasKey: string;
let leasToken: string;
const world = worldForTests(async ({ db, manage, teams, people, acme: id }) => {
  await manage.updateOrganizationLimits({ ...acme, members: { week: "1000", month: "4000" } });
  await manage.updateOrganizationLimits({ ...acme, keys: { week: "500" } });
  await manage.updateTeamLimits({ team: teams.research, own: { week: "5000" } });
  const keys = await keysOf(db, people.lea, id, teams.research);
  [leasKey, leasToken] = [keys.key, keys.jwt];
  await manage.updateKeyLimits({ id: leasKey, own: { week: "400" } });
});

/** The limits that apply to Lea, as an administrator sees them. */
async function counting(manage: Management) {
  const person = world.people.lea;
  const { memberships } = await manage.findPerson({ person });
  const team = memberships[0]?.team?.id;
  const key = await manage.findKey({ id: leasKey });
  const of = ({ inForce, models, raises }: SubjectLimitsShown) => ({ inForce, models, raises });
  return {
    person: of(await manage.findPersonLimits({ person, ...acme })),
    team: team ? of(await manage.findTeamLimits({ team })) : null,
    newKeys: (await manage.findOrganizationLimits(acme)).keys,
    key: { team: key.team, ...of(await manage.findKeyLimits({ id: leasKey })) },
    token: (await manage.findKey({ id: leasToken })).team,
  };
}

type Act = (manage: Management) => Promise<unknown>;

/** Runs `act` as Lea, after somebody else has run `first`. All changes are then rolled back. */
async function tried(act: Act, first: Act = async () => {}) {
  let seen = {};
  await apart(world, async ({ root, lea }) => {
    await first(root);
    const before = await counting(root);
    const { code, message } = await act(lea).then(
      () => ({ code: "done", message: "" }),
      (refused: { code: string; message: string }) => refused,
    );
    seen = { code, message, before, after: await counting(root) };
  });
  return seen as { code: string; message: string; before: unknown; after: unknown };
}

const organization =
  (change: object): Act =>
  (manage) =>
    manage.updateOrganizationLimits({ ...acme, ...change });
const person =
  (change: object): Act =>
  (manage) =>
    manage.updatePersonLimits({ person: world.people.lea, ...acme, ...change });
const team =
  (change: object, name: "research" | "support" = "research"): Act =>
  (manage) =>
    manage.updateTeamLimits({ team: world.teams[name], ...change });
const key =
  (change: object): Act =>
  (manage) =>
    manage.updateKeyLimits({ id: leasKey, ...change });
const movesKey =
  (to: string | null): Act =>
  (manage) =>
    manage.updateKey({ id: leasKey, team: to });
const removesTeam =
  (name: "research" | "support"): Act =>
  (manage) =>
    manage.removeTeam({ team: world.teams[name] });
const createsKey =
  (more: object): Act =>
  (manage) =>
    manage.createKey({ ...acme, name: "more", ...more });

const raise = (week: string, more: object = {}) => ({ raise: { limits: { week }, until: tomorrow, ...more } });
const models = (week: string, pattern = "acme/*") => ({ models: { [pattern]: { week } } });
const raisedPerson = person(raise("2000"));
const ofModels = person(models("9"));
const ownLimits = person({ own: { week: "10" } });

describe("an organization's administrator is refused", () => {
  const cases: [string, Act, Act?][] = [
    ["a higher limit of members", organization({ members: { week: "2000" } })],
    ["no limit of members", organization({ members: { week: null } })],
    ["her own limits taken away, so that those of members count again", person({ own: { week: null } }), ownLimits],
    ["a raise of her own that lasts longer", person(raise("2000", { until: later })), raisedPerson],
    ["no limit of her team", team({ own: { week: null } })],
    ["no limit of her team's members, whatever the organization gives", team({ members: { month: "none" } })],
    ["the removal of her team", removesTeam("research")],
    [
      "the removal of her team whose members had less",
      removesTeam("research"),
      team({ own: { week: null }, members: { week: "10", month: "10" } }),
    ],
    ["no limit of her key", key({ own: { week: null } })],
    ["her key out of her team", movesKey(null)],
    ["her key in another team", movesKey("support")],
    [
      "her key in another team with the same limits, which has used nothing yet",
      movesKey("support"),
      team({ own: { week: "5000" } }, "support"),
    ],
    ["a higher limit of her team's models", team(models("10", "acme/writer-1")), team(models("9", "acme/writer-1"))],
    ["higher limits of new keys", organization({ keys: { week: "501" } })],
    [
      "a new key of her own with more than new keys get",
      (manage) => createsKey({ person: world.people.lea, limits: { week: "501" } })(manage),
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
  const cases: [string, Act, Act?][] = [
    ["her own limits that leave out what members get, which counts still", person({ own: { week: "900" } })],
    ["a limit of her models, where there was none", ofModels],
    ["lower limits of members", organization({ members: { week: "900" } })],
    ["higher limits of members, where she has her own", organization({ members: { week: "2000" } }), ownLimits],
    ["the end of a raise of her own", person({ raise: null }), raisedPerson],
    ["her team's name", (manage) => manage.updateTeam({ team: world.teams.research, name: "science" })],
    ["the removal of another team", removesTeam("support")],
    ["the removal of her team, which limited nothing", removesTeam("research"), team({ own: { week: null } })],
    ["the end of her key", (manage) => manage.revokeKey({ id: leasKey })],
    ["a rotation of her key", (manage) => manage.rotateKey({ id: leasKey })],
    ["a new key of her own", (manage) => createsKey({ person: world.people.lea })(manage)],
    ["a key of the organization, which counts for nobody", createsKey({ limits: { week: "9000" } })],
  ];
  for (const [name, act, first] of cases)
    test(name, async () => {
      expect(await tried(act, first)).toMatchObject({ code: "done", message: "" });
    });
});

test("the service's administrators, operators and the command line are not bound by it", async () => {
  for (const who of ["ada", "operator", "root"] as const)
    await apart(world, async (as) => {
      const set = await as[who].updateOrganizationLimits({ ...acme, members: { week: "2000" } });
      expect(set.members?.week).toEqual({ amount: "2000.000000000", currency: "USD" });
    });
});

test("of two who act at once, the one for whom it counts raises nothing over the other's lower limit", async () => {
  const { root, lea } = actingIn(world);
  for (let round = 0; round < 5; round++) {
    await root.updateOrganizationLimits({ ...acme, members: { week: "1000" } });
    await Promise.allSettled([
      root.updateOrganizationLimits({ ...acme, members: { week: "50" } }),
      lea.updateOrganizationLimits({ ...acme, members: { week: "500" } }),
    ]);
    const { members } = await root.findOrganizationLimits(acme);
    expect(members?.week).toMatchObject({ amount: "50.000000000" });
  }
});
