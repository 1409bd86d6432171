/** Teams: create, list, show, change, remove. An `organization-admin` does all of it in the own organization. */
import Type from "typebox";
import { nullable } from "../../../protocol/shapes/contract.ts";
import { type ReadTeam, readTeam, teamJson } from "../budget-records.ts";
import { limitChanges, TeamRecord } from "../budget-shapes.ts";
import { exampleAt, exampleIds } from "../examples.ts";
import {
  type ManagementOperation,
  managementOperation,
  pageParameters,
  pageRead,
  pageSchema,
  pageShown,
  words,
} from "../operation.ts";

const unlimited = {
  session: null,
  week: null,
  month: null,
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_requests: null,
};
const research: Type.Static<typeof TeamRecord> = {
  id: exampleIds.team,
  organization_id: exampleIds.organization,
  organization: "acme",
  name: "research",
  keys: 3,
  limits: { ...unlimited, week: 2_000_000_000 },
  key_limits: null,
  created_at: exampleAt,
  version: 1,
};

const seen = ["viewer", "organization-admin"] as const;
const common = { tag: "Teams", also: ["organization-admin"] } as const;
const answer = { answers: TeamRecord, encode: teamJson, read: readTeam };
const one = { ...common, ...answer, id: "team" } as const;
const organization = Type.Optional(nullable(words("Slug or ID: the team can then be given by its name.")));
const limits = () => limitChanges("What it can use. What is left out stays; null takes a limit away.");
const keyLimits = () => limitChanges("What each new key of the team gets; keys that exist keep theirs.");

export const teamOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ ...common, verb: "pageTeams", method: "get", path: "/teams", kind: "reading", also: seen },
    summary: "List teams",
    description: "Of all organizations or of one, in the order in which they were created.",
    takes: Type.Object({ ...pageParameters, organization: Type.Optional(words("Slug or ID.")) }),
    answers: pageSchema(TeamRecord, "Teams"),
    example: { answer: { data: [research], next_cursor: null } },
    encode: (page) => pageShown(page, teamJson),
    read: (value: { data: ReadTeam[]; nextCursor: string | null }) => pageRead(value, readTeam),
  }),
  managementOperation({
    ...{ ...common, ...answer, verb: "createTeam", method: "post", path: "/teams", kind: "creation" },
    summary: "Create a team",
    description: "Its name is unique in its organization.",
    takes: Type.Object({
      organization: words("Slug or ID."),
      name: words("Its name."),
      limits: Type.Optional(nullable(limits())),
      key_limits: Type.Optional(nullable(keyLimits())),
    }),
    example: {
      takes: { organization: "acme", name: "research", limits: { week: 2_000_000_000 } },
      answer: { ...research, keys: 0 },
    },
  }),
  managementOperation({
    ...{ ...one, verb: "findTeam", method: "get", path: "/teams/{id}", kind: "reading", also: seen },
    summary: "Show a team",
    description: "By its ID, or with `organization` by its name.",
    takes: Type.Object({ organization: Type.Optional(words("Slug or ID: the team can then be given by its name.")) }),
    example: { id: exampleIds.team, answer: research },
  }),
  managementOperation({
    ...{ ...one, verb: "updateTeam", method: "patch", path: "/teams/{id}", kind: "change" },
    summary: "Change a team",
    description: "What is left out stays. New limits count at once, for running requests too.",
    takes: Type.Object({
      organization,
      name: Type.Optional(nullable(words("Its new name."))),
      limits: Type.Optional(nullable(limits())),
      key_limits: Type.Optional(nullable(keyLimits())),
    }),
    example: { id: exampleIds.team, takes: { limits: { month: null } }, answer: research },
  }),
  managementOperation({
    ...{ ...one, verb: "removeTeam", method: "post", path: "/teams/{id}/remove", kind: "act" },
    summary: "Remove a team",
    description: "Its keys stay and work, in no team. What ran goes on counting where it was admitted.",
    takes: Type.Object({ organization }),
    example: { id: exampleIds.team, takes: {}, answer: research },
  }),
];
