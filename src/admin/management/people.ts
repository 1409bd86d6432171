/** People: everybody who has signed in through an issuer (docs/identity.md, People and memberships by hand). */
import Type from "typebox";
import { day, instant } from "../../core/time/written.ts";
import { type KnownPerson, type Membership, Person } from "../../features/identity/store/people.ts";
import { exampleOf } from "../store/example.ts";
import type { PersonChanged } from "../store/people.ts";
import { type Column, type Facts, flag } from "./command.ts";
import { lastAdministrator, type ManagementContext } from "./context.ts";
import { partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { personIdOf, personNamed } from "./person-named.ts";
import { admins, limitIn, owners, partOf, partOfIds, queryFlag, readers, words } from "./shapes.ts";
import { over, overFlag } from "./standing.ts";
import { teamNamed } from "./team.ts";
import { verbsOf } from "./verb.ts";
import { changed } from "./version.ts";

const verb = verbsOf("People");

export const examplePerson: Person = exampleOf(Person);
const one = { person: words(`${personNamed}.`) };
const sent = { person: examplePerson.id };
export const personFlag = flag("<person>", `${personNamed} (see: sluice person list)`);

const personColumns: Column<Person>[] = [
  { head: "ID", cell: (person) => person.id },
  { head: "NAME", cell: (person) => person.name ?? "", breaks: true },
  { head: "E-MAIL", cell: (person) => person.email ?? "" },
  { head: "STATE", cell: (person) => person.state },
  { head: "MEMBERSHIPS", cell: (person) => person.memberships.map(membershipWords).join("; "), breaks: true },
  { head: "CONFIRMED", cell: (person) => day(person.confirmedAt), optional: true },
  { head: "KIND", cell: (person) => person.kind, optional: true },
];

const membershipWords = ({ organization, team, role, source }: Membership) =>
  `${organization === null ? role : `${role} in ${organization}`}${team ? `, team ${team.name}` : ""}${source === "hand" ? " (by hand)" : ""}`;

export function personFacts(person: Person): Facts {
  const email = person.email && `${person.email}${person.isEmailVerified ? "" : " (not verified)"}`;
  return [
    ["id", person.id],
    ["name", person.name],
    ["e-mail", email],
    ["issuer", person.issuer],
    ["subject", person.subject],
    ["kind", person.kind],
    ["groups", person.groups.join(", ") || null],
    ["state", person.state],
    ["came first", instant(person.createdAt)],
    ["confirmed", instant(person.confirmedAt)],
    ...(person.memberships.length === 0
      ? ([["memberships", "none"]] as const)
      : person.memberships.map((one) => ["membership", membershipWords(one)] as const)),
    ["version", String(person.version)],
  ];
}

/** The common fields of all verbs that change a person. */
export const personChange = {
  roles: admins,
  kind: "change",
  faults: ["resource_not_found", "wrong_state", "version_conflict"],
  takes: Type.Object(one),
  answers: Person,
} as const;
const onePerson = { takes: { person: personFlag }, versioned: "person", says: personFacts };

export const personVerbs = [
  verb({
    name: "pagePeople",
    route: "GET /people",
    summary: "List people",
    description: "Oldest first. An `organization-admin` sees those with a membership in their own organization.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({
      ...partOfIds("per"),
      organization: Type.Optional(words("Slug or ID: only people with a membership there.")),
      team: Type.Optional(
        words("Only people whose membership is in this team: its ID, or with `organization` its name."),
      ),
      search: Type.Optional(words("A part of a name or an e-mail address, in any case.")),
      suspended: queryFlag("True: only people who are suspended. False: the others."),
      by_hand: queryFlag(
        "True: only people for whom something was set by hand: a membership, limits of their own, or a suspension.",
      ),
      over,
    }),
    answers: partOf(Person, "People"),
    example: { takes: {}, answer: { data: [examplePerson], nextCursor: null } },
    command: {
      words: "person list",
      description: "list people who signed in through an issuer",
      takes: {
        organization: flag("--org <org>", "only people with a membership in this organization"),
        team: flag("--team <team>", "only people in this team (its ID, or with --org its name)"),
        search: flag("--search <text>", "a part of a name or an e-mail address"),
        suspended: flag("--suspended", "only people who are suspended"),
        byHand: flag(
          "--by-hand",
          "only people for whom something was set by hand: a membership, limits or a suspension",
        ),
        over: overFlag("people"),
      },
      columns: personColumns,
      none: "There is nobody yet. People appear when they first come in by an issuer (docs/identity.md).\n",
      parts: "all",
    },
    async act(context, input) {
      const owner = input.organization === undefined ? null : await context.organizationOf(input.organization);
      const found = await context.people.pagePeople({
        ...input,
        limit: limitIn(input),
        after: input.cursor,
        overPercent: input.over,
        organizationId: await context.narrowedTo(owner?.id),
        teamId: input.team === undefined ? undefined : (await teamNamed(context, input.team, owner)).id,
      });
      return partFrom(found, (known) => personIn(context, known));
    },
  }),
  verb({
    name: "findPerson",
    route: "GET /people/{person}",
    summary: "Show a person",
    description: "With the memberships in force. A `member` sees only themselves.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object(one),
    answers: Person,
    example: { takes: sent, answer: examplePerson },
    command: {
      words: "person show",
      description: "show a person with the memberships in force",
      takes: { person: personFlag },
      says: personFacts,
    },
    act: async (context, input) => personIn(context, await personOf(context, input.person)),
  }),
  verb({
    name: "suspendPerson",
    route: "POST /people/{person}/suspend",
    summary: "Suspend a person",
    description:
      "The person's keys and tokens are refused on every node within a second until the person is resumed, what runs by them ends, and sessions of browsers end for good.",
    ...personChange,
    example: { takes: sent, answer: { ...examplePerson, state: "suspended", version: 2 } },
    command: {
      words: "person suspend",
      description: "suspend a person: all keys, tokens and sessions, on every node within a second",
      ...onePerson,
    },
    act: (context, input) => changePerson(context, input, context.people.suspendPerson),
  }),
  verb({
    name: "resumePerson",
    route: "POST /people/{person}/resume",
    summary: "Resume a person",
    description: "The person's keys and tokens work again. In a browser, the person signs in again.",
    ...personChange,
    example: { takes: sent, answer: { ...examplePerson, version: 3 } },
    command: {
      words: "person resume",
      description: "resume a suspended person",
      ...onePerson,
    },
    act: (context, input) => changePerson(context, input, context.people.resumePerson),
  }),
  verb({
    name: "forgetPerson",
    route: "POST /people/{person}/forget",
    summary: "Erase personal data",
    description:
      "Erases name, e-mail address, subject and groups for good, takes the memberships, and revokes the person's keys. Usage stays under the ID. If the issuer vouches for the person again, the same ID comes back.",
    ...personChange,
    example: {
      takes: sent,
      answer: {
        ...examplePerson,
        subject: null,
        email: null,
        isEmailVerified: false,
        name: null,
        groups: [],
        memberships: [],
        state: "forgotten",
        version: 4,
      },
    },
    command: {
      words: "person forget",
      description: "erase personal data: who a person is, for good; the person's keys are revoked",
      ...onePerson,
    },
    act: (context, input) => changePerson(context, input, context.people.forgetPerson),
  }),
] as const;

export async function personOf(context: ManagementContext, name: string): Promise<KnownPerson> {
  const found = await context.people.findPerson(await personIdOf(context, name));
  const isOther = context.person !== null && context.person !== found?.id;
  const isInSight = found && !isOther && (context.within === null || visible(context, found).length > 0);
  return isInSight ? found : noPerson(name);
}

const visible = ({ within }: ManagementContext, { memberships }: KnownPerson) =>
  within === null ? memberships : memberships.filter(({ organizationId }) => organizationId === within);

/** The person's membership in the one organization that the actor sees. */
export const membershipIn = (context: ManagementContext, known: KnownPerson) => visible(context, known)[0] ?? null;

/** The person as the actor may see them: an organization's administrator does not learn about other organizations. */
function personIn(context: ManagementContext, known: KnownPerson): Person {
  return context.within === null ? known : { ...known, groups: [], memberships: visible(context, known) };
}

export async function changePerson(
  context: ManagementContext,
  { person: named, version: read }: { person: string; version?: number | undefined },
  act: (id: string, actor: string, version?: number) => Promise<PersonChanged>,
): Promise<Person> {
  const id = await personIdOf(context, named);
  return changed(
    context,
    { read, id },
    {
      schema: Person,
      title: () => `Person ${id}`,
      listed: (now) => personIn(context, now),
      refusals: { gone: () => noPerson(id), last_admin: lastAdministrator },
    },
    await act(id, context.actor, read),
  );
}

export function noPerson(name: string): never {
  return parse.missing("person", name, " people", "person list");
}
