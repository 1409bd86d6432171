// Tests who may set which limits: each field of each subject, by each role, of the caller and of others
// (docs/access.md, Limits of one's own). The expected outcomes are stated here independently.
import { expect, setDefaultTimeout, test } from "bun:test";
import { requireRole } from "../../../src/admin/http/gate.ts";
import { perform } from "../../../src/admin/management/verb.ts";
import { type VerbName, verbNamed } from "../../../src/admin/management/verbs.ts";
import { rolledBack } from "../../stores/postgres/rolled-back.ts";
import { codeOf, type Who, worldForTests } from "./own-world.ts";
import { actingAs, callersIn, contextFor, inside, keysOf, type World } from "./world.ts";

setDefaultTimeout(300_000);
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
let leasKey: string;
const world = worldForTests(async ({ db, manage, acme, teams, people, keys }) => {
  leasKey = (await keysOf(db, people.lea, acme, teams.research)).key;
  const ten = { week: "10" };
  const models = { "acme/*": ten };
  const given = { keys: ten, members: ten, models };
  await manage.updateOrganizationLimits({ organization: "acme", own: { week: "100" }, ...given });
  for (const team of [teams.research, teams.support]) await manage.updateTeamLimits({ team, own: ten, ...given });
  for (const id of [leasKey, keys.key]) await manage.updateKeyLimits({ id, own: ten, models });
  for (const person of [people.lea, people.ann])
    await manage.updatePersonLimits({ organization: "acme", person, own: ten, models });
});

/**
 * The subjects whose limits are set. Lea administers acme and is in its team `research`; Ann is in the team, too.
 * `hers` means that the subject's limits apply to Lea.
 */
const subjects = {
  organization: { verb: "updateOrganizationLimits", hers: true, of: () => ({ organization: "acme" }) },
  "her team": { verb: "updateTeamLimits", hers: true, of: () => ({ team: world.teams.research }) },
  "another team": { verb: "updateTeamLimits", hers: false, of: () => ({ team: world.teams.support }) },
  herself: {
    ...{ verb: "updatePersonLimits", hers: true },
    of: () => ({ organization: "acme", person: world.people.lea }),
  },
  "another person": {
    ...{ verb: "updatePersonLimits", hers: false },
    of: () => ({ organization: "acme", person: world.people.ann }),
  },
  "her key": { verb: "updateKeyLimits", hers: true, of: () => ({ id: leasKey }) },
  "another key": { verb: "updateKeyLimits", hers: false, of: () => ({ id: world.keys.key }) },
} as const satisfies Record<string, { verb: VerbName; hers: boolean; of(): object }>;
type Subject = keyof typeof subjects;

/**
 * The changes of limits. Before each change, every limit is 10 a week, except the organization's own limit, which is
 * 100.
 */
const fields = {
  "own, higher": { own: { week: "11" } },
  "own, none": { own: { week: "none" } },
  "own, lower": { own: { week: "9" } },
  "keys, higher": { keys: { week: "11" } },
  "keys, lower": { keys: { week: "9" } },
  "members, higher": { members: { week: "11" } },
  "members, lower": { members: { week: "9" } },
  "models, higher": { models: { "acme/*": { week: "11" } } },
  "models, taken away": { models: { "acme/*": null } },
  "models, lower": { models: { "acme/*": { week: "9" } } },
  raise: { raise: { limits: { week: "12" }, until: tomorrow } },
  "raise above the organization's": { raise: { limits: { week: "120" }, until: tomorrow } },
  "raise for models": { raise: { models: "acme/*", limits: { week: "12" }, until: tomorrow } },
  "one that she may lower, and one that she may not raise": { keys: { week: "9" }, own: { week: "11" } },
} as const;
type Field = keyof typeof fields;

const givers: readonly Subject[] = ["organization", "her team", "another team"];
const loosens = (field: Field) => !field.endsWith("lower");

/** The expected outcome: `done`, or the code of the refusal. */
function expected(who: Who, subject: Subject, field: Field): string {
  const isGiven = /^(keys|members|one)/.test(field);
  const isOwnOfOrganization = subject === "organization" && !/^(keys|members)/.test(field);
  if (/^(member|viewer)|viewer/.test(who) || who.startsWith("member")) return "missing_role";
  const isBound = who.includes("organization-admin");
  if (who.endsWith("elsewhere")) return isOwnOfOrganization ? "missing_role" : "resource_not_found";
  if (isBound && isOwnOfOrganization) return "missing_role";
  if (isGiven && !givers.includes(subject)) return "invalid_value";
  // The organization's default of 10 does not apply to Lea: she has a limit of her own, and so do her keys. But her
  // team's default for new keys does apply to her.
  if (field === "raise above the organization's" && subject !== "organization") return "invalid_value";
  if (subject === "organization" && field === "raise") return "invalid_value";
  const isPerson = who === "organization-admin";
  if (!isPerson || !loosens(field) || !subjects[subject].hers) return "done";
  if (subject === "organization") return "done";
  if (subject === "her team" && field === "members, higher") return "done";
  return "wrong_state";
}

test("each field of each subject, by each role, own and others', is done or refused as the page says", async () => {
  const wrong: string[] = [];
  let tried = 0;
  const limitsIn = async (db: World["db"]) => {
    const root = actingAs(db, callersIn(world)["command line"]);
    const limits = JSON.stringify(await root.findOrganizationLimits({ organization: "acme", of: "teams" }));
    return limits.replaceAll(/"(startsAt|resetAt)":"[^"]*"/g, "");
  };
  // The limits before each attempt, because every attempt is rolled back.
  const before = await limitsIn(world.db);
  for (const [who, caller] of Object.entries(callersIn(world)) as [Who, ReturnType<typeof callersIn>[Who]][])
    for (const [subject, { verb, of }] of Object.entries(subjects) as [Subject, (typeof subjects)[Subject]][])
      for (const [field, value] of Object.entries(fields) as [Field, object][]) {
        tried += 1;
        const gated = (async () => requireRole(caller, verbNamed(verb) as never))();
        let seen = await codeOf(gated);
        if (seen === "done")
          await rolledBack(world.db.transaction, async (tx) => {
            const db = inside(world.db, tx);
            seen = await codeOf(perform(verbNamed(verb) as never, contextFor(db, caller), { ...of(), ...value }));
            // If one field is refused, the whole change is refused.
            if (seen !== "done")
              expect([who, subject, field, await limitsIn(db)]).toEqual([who, subject, field, before]);
          });
        const right = expected(who, subject, field);
        if (seen !== right) wrong.push(`${field} of ${subject} by ${who}: ${seen}, expected ${right}`);
      }
  expect(wrong).toEqual([]);
  expect(tried).toBe(10 * 7 * 14);
});
