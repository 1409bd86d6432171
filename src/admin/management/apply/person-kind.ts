/**
 * People in a file of organizations, with the memberships and limits that were set for them by hand. A file creates
 * nobody, since people appear when they sign in. Each membership is a field, and so are the limits in each
 * organization. Pure.
 */
import Type from "typebox";
import { nullable, oneOf } from "../../../core/protocol/shapes/contract.ts";
import { scopes } from "../../../core/store/directory.ts";
import { memberRoles, serviceRoles } from "../../../core/store/people.ts";
import type { Membership } from "../../../features/identity/store/people.ts";
import { verbNamed } from "../verbs.ts";
import type { Field, Kind, Values } from "./kind.ts";
import { limitsEntry, limitsField, limitsWritten } from "./limits.ts";
import type { PersonState } from "./state.ts";
import type { WantedPerson } from "./wanted.ts";

const { team, scopes: someScopes, models } = verbNamed("giveMembership").takes.properties;
const { slug } = verbNamed("createOrganization").takes.properties;

const MembershipEntry = Type.Object(
  { role: oneOf([...memberRoles]), team, scopes: someScopes, models },
  { additionalProperties: false },
);
const bySlug = <Entry extends Type.TSchema>(entry: Entry) =>
  Type.Record(Type.String(), entry, { propertyNames: slug as never });

/** A person in the file. */
export const PersonEntry = Type.Object(
  {
    suspended: Type.Optional(Type.Boolean()),
    role: Type.Optional(nullable(oneOf([...serviceRoles]))),
    memberships: Type.Optional(bySlug(nullable(MembershipEntry))),
    limits: Type.Optional(bySlug(limitsEntry(false))),
  },
  { additionalProperties: false },
);

export const personName = {
  pattern: "^(?=.{3,2000}$)(?:https?://\\S+ \\S(?:.*\\S)?|[^\\s@]\\S*@\\S+)$",
  "x-must-be": "a verified e-mail address, or an issuer and a subject with a space between them",
};

/** A person's name in the file; if the name is an e-mail address, it is in lower case. */
export const normalName = (name: string) => (name.includes(" ") ? name : name.toLowerCase());

/**
 * The name that a file gives the person and that no change of the e-mail address affects: issuer and subject. Null: the
 * person was forgotten.
 */
export const nameOf = ({ person: { issuer, subject } }: PersonState): string | null =>
  subject === null ? null : `${issuer} ${subject}`;

export function namesOf(now: PersonState): string[] {
  const { email, isEmailVerified } = now.person;
  return [nameOf(now), isEmailVerified && email ? normalName(email) : null].filter((name) => name !== null);
}

/** The memberships that were given by hand, as a file has them, by the slugs of organizations. */
export function membershipsWritten({ person }: PersonState): Map<string, Values> {
  const byHand = person.memberships.filter(({ source, organization }) => source === "hand" && organization !== null);
  return new Map(
    byHand.map(({ organization, ...one }) => [organization!, membershipWritten({ ...one, team: one.team?.name })]),
  );
}

type Written = Partial<Pick<Membership, "role" | "scopes" | "models">> & { team?: string | null | undefined };

/**
 * The membership without members that have default values, and with sorted lists, so that equal memberships have the
 * same text.
 */
function membershipWritten({ role, team, scopes: some, models }: Written): Values {
  const listed = scopes.filter((scope) => some?.includes(scope) ?? true);
  return {
    role,
    ...(team == null ? {} : { team }),
    ...(listed.length === scopes.length ? {} : { scopes: listed }),
    ...(models == null ? {} : { models: [...new Set(models)].sort() }),
  };
}

export const roleByHand = ({ person }: PersonState): string | null =>
  person.memberships.find(({ source, organization }) => source === "hand" && organization === null)?.role ?? null;

/** The sections of a person's entry whose members are named by the slugs of organizations. */
export const placed = ["memberships", "limits"] as const;

/** The fields of an entry: `memberships.acme`, `limits.acme`, and the others. */
export function valuesOf(entry: WantedPerson): Values {
  const { memberships, limits, ...values } = entry;
  const under = (section: string, members: Readonly<Record<string, unknown>> = {}) =>
    Object.entries(members).map(([slug, value]) => [`${section}.${slug}`, value]);
  return { ...values, ...Object.fromEntries([...under("memberships", memberships), ...under("limits", limits)]) };
}

/** The kind (fields and verbs) for a person whose entry in the file has fields with these names. */
export function personKind(names: readonly string[]): Kind<PersonState> {
  const fields = names.map((name): [string, Field<PersonState>] => {
    const [section, slug] = name.split(".");
    if (slug === undefined) return [name, ownFields[name as keyof typeof ownFields]];
    return [name, section === "memberships" ? membershipIn(slug) : limitsIn(slug)];
  });
  return {
    word: "person",
    creation: null,
    subject: (_, now) => ({ person: now!.person.id }),
    version: ({ person }) => person.version,
    fields: Object.fromEntries(fields),
  };
}

const ownFields: Record<"suspended" | "role", Field<PersonState>> = {
  suspended: {
    schema: Type.Boolean(),
    read: ({ person }) => person.state === "suspended",
    fresh: false,
    member: null,
    sets: (value) => ({ verb: value ? "suspendPerson" : "resumePerson", input: {} }),
  },
  role: {
    schema: nullable(oneOf([...serviceRoles])),
    read: roleByHand,
    fresh: null,
    member: null,
    sets: (role) =>
      role === null ? { verb: "takeMembership", input: {} } : { verb: "giveMembership", input: { role } },
  },
};

const membershipIn = (organization: string): Field<PersonState> => ({
  schema: nullable(MembershipEntry),
  read: (now) => membershipsWritten(now).get(organization) ?? null,
  fresh: null,
  normal: (value) => value && membershipWritten(value),
  member: null,
  sets: (value) =>
    value === null
      ? { verb: "takeMembership", input: { organization } }
      : { verb: "giveMembership", input: { organization, ...(value as object) } },
});

const limitsIn = (organization: string): Field<PersonState> =>
  limitsField("updatePersonLimits", false, (now) => now.limits.get(organization) ?? null, { organization });

export const personLimitsWritten = (now: PersonState): Map<string, Values> =>
  new Map([...now.limits].map(([slug, limits]) => [slug, limitsWritten(limits)]));
