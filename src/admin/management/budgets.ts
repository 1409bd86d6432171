/** The limits of the keys to come (docs/design/usage.md, Budgets). */
import Type from "typebox";
import { type Budget, noBudget } from "../../core/store/budget.ts";
import { limitChanges, managers, oneOrganization, readers } from "./shapes.ts";
import { changeDefault, defaultCommand, defaultShape, defaultShown, exampleDefault } from "./team-limits.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Keys");

export const KeyDefault = defaultShape(
  "KeyDefault",
  "What a new key of the organization gets, unless its team says otherwise.",
);

const limits: Budget = { ...noBudget, session: 20_000_000, requestsPerMinute: 60, concurrentRequests: 4 };
const changes = () => limitChanges("What is left out stays; null takes a limit away.");

const findKeyDefault = verb({
  name: "findKeyDefault",
  route: "GET /organizations/{organization}/key-limits",
  summary: "Show the limits that new keys get",
  description: "Unless their team says otherwise.",
  roles: readers,
  faults: ["resource_not_found"],
  takes: Type.Object(oneOrganization),
  answers: KeyDefault,
  example: { takes: { organization: "acme" }, answer: exampleDefault(limits) },
  async act({ administration, organizationOf }, input) {
    const organization = await organizationOf(input.organization);
    return defaultShown(organization, await administration.keyDefault(organization.id));
  },
});

export const budgetVerbs = [
  findKeyDefault,
  verb({
    name: "updateKeyDefault",
    route: "PATCH /organizations/{organization}/key-limits",
    summary: "Change the limits that new keys get",
    description: "Keys that exist keep theirs.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object({ ...oneOrganization, limits: changes() }),
    answers: KeyDefault,
    example: { takes: { organization: "acme", limits: { session: 20_000_000 } }, answer: exampleDefault(limits) },
    command: defaultCommand(findKeyDefault, {
      words: "org key-limits",
      description: "show or set the limits that each new key of an organization gets; keys that exist keep theirs",
      limit: "what a new key can use, unless its team says otherwise",
      whose: "New keys",
    }),
    act: (context, input) => changeDefault(context, input, { of: "Key", whose: "new key", schema: KeyDefault }),
  }),
] as const;
