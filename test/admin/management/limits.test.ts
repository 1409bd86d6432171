// The limits of an organization, a team, a person and a key: which are set, which are in force, where each limit is
// inherited from, and which changes are refused.
import { expect, setDefaultTimeout, test } from "bun:test";
import type { ManagementError } from "../../../src/admin/management/error.ts";
import type { SubjectLimitsShown } from "../../../src/admin/management/limit-shape.ts";
import { inNanos } from "../../harness/limits.ts";
import { apart, codeOf, worldForTests } from "./own-world.ts";

setDefaultTimeout(60_000);
const world = worldForTests();

/** The limits that are in force, as text: `week: 5 (own)`. */
function inForce({ inForce: all }: SubjectLimitsShown): Record<string, string> {
  const limits = inNanos(Object.fromEntries(Object.entries(all).map(([name, { limit }]) => [name, limit])));
  return Object.fromEntries(
    Object.entries(limits).map(([name, limit]) => {
      const { from } = all[name as keyof typeof all];
      const isMoney = ["session", "week", "month"].includes(name);
      return [name, `${isMoney ? Number(limit) / 1e9 : limit} (${from})`];
    }),
  );
}

test("a temporary increase ends when it is said, and not by a change that names no limits", () =>
  apart(world, async ({ root: manage }) => {
    const team = world.teams.research;
    const until = new Date(Date.now() + 86_400_000).toISOString();
    await manage.updateTeamLimits({ team, own: { week: "5" } });
    await manage.updateTeamLimits({ team, raise: { limits: { week: "9" }, until } });
    for (const raise of [{}, { models: null }]) {
      const refused = manage.updateTeamLimits({ team, raise }).catch((cause: Error) => cause.message);
      expect(await refused).toStartWith("Specify the limits to increase");
    }
    expect((await manage.findTeamLimits({ team })).raises).toHaveLength(1);
    const ended = await manage.updateTeamLimits({ team, raise: { limits: null } });
    expect(ended.raises).toEqual([]);
    for (const raise of [null, { limits: null }])
      expect((await manage.updateTeamLimits({ team, raise })).version).toBe(ended.version);
    const slip = manage.updateTeamLimits({ team, raise: { models: "acmee/*", limits: null } });
    expect(await codeOf(slip)).toBe("wrong_state");
    await manage.updateTeamLimits({ team, models: { "acme/*": { week: "5" } } });
    await manage.updateTeamLimits({ team, raise: { models: "acme/*", limits: { week: "9" }, until } });
    const other = manage.updateTeamLimits({ team, raise: { limits: null } }).catch((cause: Error) => cause.message);
    expect(await other).toContain("is for 'acme/*'");
  }));

test("keys and people inherit limit by limit, live: their own, their team's, the organization's", () =>
  apart(world, async ({ root: manage }) => {
    const [organization, team, person, id] = ["acme", world.teams.research, world.people.ann, world.keys.key];
    const ofKey = async (key = id) => inForce(await manage.findKeyLimits({ id: key }));
    const ofPerson = async () => inForce(await manage.findPersonLimits({ organization, person }));
    await manage.updateOrganizationLimits({ organization, keys: { week: "5", month: "20" }, members: { week: "7" } });
    expect(await ofKey()).toEqual({ week: "5 (organization)", month: "20 (organization)" });
    await manage.updateTeamLimits({ team, keys: { week: "4" }, members: { session: "1" } });
    expect(await ofKey()).toEqual({ week: "4 (team)", month: "20 (organization)" });
    expect(await ofPerson()).toEqual({ session: "1 (team)", week: "7 (organization)" });
    await manage.updateKeyLimits({ id, own: { month: "none", week: "3" } });
    expect(await ofKey()).toEqual({ week: "3 (own)" });
    await manage.updatePersonLimits({ organization, person, own: { week: "none" } });
    expect(await ofPerson()).toEqual({ session: "1 (team)" });
    await manage.updateKeyLimits({ id, own: { month: null, week: null } });
    expect(await ofKey()).toEqual({ week: "4 (team)", month: "20 (organization)" });
    const made = await manage.createKey({ organization, name: "new", team, limits: { week: "2" } });
    expect(await ofKey(made.id)).toEqual({ week: "2 (own)", month: "20 (organization)" });
    await manage.removeTeam({ team });
    expect(await ofKey(made.id)).toEqual({ week: "2 (own)", month: "20 (organization)" });
  }));

test("an instant that does not exist is refused by the name of its member", () =>
  apart(world, async ({ root: manage }) => {
    const raise = { limits: { week: "9" }, until: "2030-02-30" };
    const refused = manage.updateTeamLimits({ team: world.teams.research, raise });
    await expect(refused).rejects.toMatchObject({ code: "invalid_value", details: { param: "raise.until" } });
    const key = manage.createKey({ organization: "acme", name: "app", expiresAt: "2030-02-30" });
    await expect(key).rejects.toMatchObject({ details: { param: "expires_at" } });
  }));

test("the cursor of a list is for this list alone", () =>
  apart(world, async ({ root: manage }) => {
    const pages = [{ limit: 1 }, { cursor: world.keys.key }, { of: "teams", cursor: world.keys.key }] as const;
    for (const page of pages)
      expect(await codeOf(manage.findOrganizationLimits({ organization: "acme", ...page }))).toBe("invalid_value");
    const next = { of: "teams", cursor: world.teams.research } as const;
    expect((await manage.findOrganizationLimits({ organization: "acme", ...next })).data).toHaveLength(1);
  }));

test("a misspelt member of a temporary increase is refused, and nothing is increased", () =>
  apart(world, async ({ root: manage }) => {
    const team = world.teams.research;
    await manage.updateTeamLimits({ team, own: { week: "20" }, models: { "acme/*": { week: "5" } } });
    const until = new Date(Date.now() + 86_400_000).toISOString();
    const raise = { model: "acme/*", limits: { week: "100" }, until } as object;
    const refused = await manage.updateTeamLimits({ team, raise }).catch((cause: ManagementError) => cause);
    expect(refused).toMatchObject({ code: "unknown_field", details: { param: "raise.model" } });
    expect((refused as Error).message).toEndWith("Did you mean 'models'?");
    expect((await manage.findTeamLimits({ team })).raises).toEqual([]);
  }));

test.each(["a\u0000/*", "openai\u202e/*", `${"x".repeat(300)}/*`])("no limits are for the pattern %j", (pattern) =>
  apart(world, async ({ root: manage }) => {
    const models = { [pattern]: { week: "5" } };
    const refused = await manage.updateTeamLimits({ team: world.teams.research, models }).catch((cause) => cause);
    expect(refused).toMatchObject({ code: "invalid_value" });
    expect(refused.message).toContain("must have a name that is one line of 1 to 256 characters");
  }),
);
