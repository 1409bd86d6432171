/** Writes the file that describes the current state: comparing the file with that state finds no difference. Pure. */
import { canonical } from "../../store/audit-chain.ts";
import { differences } from "./difference.ts";
import type { Kind, Values } from "./kind.ts";
import { keyKind, organizationKind, planKind, teamKind } from "./kinds.ts";
import { membershipsWritten, nameOf, personLimitsWritten, roleByHand } from "./person-kind.ts";
import type { PersonState, State } from "./state.ts";
import type { Problem } from "./step.ts";
import type { Section, WantedFile, WantedOrganization, WantedPerson } from "./wanted.ts";

export interface WrittenFile {
  file: WantedFile;
  /** Names that several keys of an organization have. A file cannot tell such keys apart, so they are left out. */
  ambiguous: { organization: string; name: string; keys: number }[];
  /** The verified addresses of people, by their names in the file. */
  addresses: ReadonlyMap<string, string>;
}

/**
 * The reasons why an empty store would refuse the file: existing limits that are above the limits of their
 * organization.
 */
export function refusedElsewhere({ file }: WrittenFile, state: State, now_ms: number): Problem[] {
  const people = state.people.map(({ person }) => ({ person: { ...person, memberships: [] }, limits: new Map() }));
  const nothing = { organizations: new Map(), renamed: new Map(), open: new Set<string>(), people };
  return differences(file, { ...state, ...nothing }, { prunes: false, now_ms }).problems;
}

/** Makes the file. `allFields`: the file also has fields whose value a new thing would have anyway. */
export function written(state: State, { allFields, now_ms }: { allFields: boolean; now_ms: number }): WrittenFile {
  const ambiguous: WrittenFile["ambiguous"] = [];
  const organizations = ordered([...state.organizations.values()], ({ organization }) => organization.slug).map(
    (one): [string, WantedOrganization] => {
      const { slug } = one.organization;
      const usable = one.keys.filter(({ expiresAt }) => !expiresAt || expiresAt.getTime() > now_ms);
      const byName = Map.groupBy(usable, ({ name }) => name);
      for (const [name, { length }] of byName)
        if (length > 1) ambiguous.push({ organization: slug, name, keys: length });
      const keys = [...byName.values()].flatMap(([key, ...others]) => (others.length === 0 ? [key!] : []));
      const teams = section(one.teams, (team) => valuesOf(teamKind, team, allFields));
      return [
        slug,
        {
          ...valuesOf(organizationKind, one.organization, allFields),
          ...(teams === null ? {} : { teams }),
          ...named(
            "keys",
            section(keys, (key) => valuesOf(keyKind, key, allFields)),
          ),
        },
      ];
    },
  );
  const plans = [...state.plans.values()].filter(({ source }) => source === "management");
  const planSection = section(plans, (plan) => valuesOf(planKind, plan, allFields));
  const { people, addresses } = peopleWritten(state, allFields);
  const file = {
    ...named("plans", planSection),
    organizations: Object.fromEntries(organizations),
    ...(Object.keys(people).length === 0 ? {} : { people }),
  };
  return { file, ambiguous, addresses };
}

/**
 * People for whom something was set by hand. Their names in the file are issuer and subject, since an e-mail address
 * may later belong to somebody else.
 */
function peopleWritten(state: State, allFields: boolean) {
  const named = state.people.flatMap((now) => {
    const name = nameOf(now);
    const entry = personWritten(now, allFields);
    return name === null || Object.keys(entry).length === 0 ? [] : [{ name, entry, now }];
  });
  const sorted = ordered(named, ({ name }) => name);
  const people: Record<string, WantedPerson> = Object.fromEntries(sorted.map(({ name, entry }) => [name, entry]));
  const addresses = sorted.flatMap(({ name, now: { person } }): [string, string][] =>
    person.isEmailVerified && person.email !== null && isWord.test(person.email) ? [[name, person.email]] : [],
  );
  return { people, addresses: new Map(addresses) };
}

/**
 * Whether a text that an issuer sent can be in a comment of YAML: it has no blanks, line breaks or control characters.
 */
const isWord = /^[^\s\p{C}]+$/u;

function personWritten(now: PersonState, allFields: boolean): WantedPerson {
  const isSuspended = now.person.state === "suspended";
  const role = roleByHand(now);
  const memberships = membershipsWritten(now);
  const limits = personLimitsWritten(now);
  return {
    ...(allFields || isSuspended ? { suspended: isSuspended } : {}),
    ...(allFields || role !== null ? { role } : {}),
    ...(allFields || memberships.size > 0 ? { memberships: inOrder(memberships) } : {}),
    ...(allFields || limits.size > 0 ? { limits: inOrder(limits) } : {}),
  };
}

const inOrder = (members: ReadonlyMap<string, Values>) => Object.fromEntries(ordered([...members], ([slug]) => slug));

const named = (name: string, things: Section | null) => (things === null ? {} : { [name]: things });

/** A section of the file. Null: the section would be empty. */
function section<Thing extends { name: string }>(
  things: readonly Thing[],
  values: (thing: Thing) => Values,
): Section | null {
  if (things.length === 0) return null;
  return Object.fromEntries(ordered(things, ({ name }) => name).map((thing) => [thing.name, values(thing)]));
}

/**
 * The things in an order that does not depend on the times of their creation, so that two exports can be compared line
 * by line.
 */
function ordered<Thing>(things: readonly Thing[], nameOf: (thing: Thing) => string): Thing[] {
  return things.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

function valuesOf<Now>(kind: Kind<Now>, now: Now, allFields: boolean): Values {
  const read = Object.entries(kind.fields).map(([name, field]) => {
    const value = (field.written ?? field.read)(now);
    const isMap = field.compares === "map" && value !== null && !field.written;
    const absent = allFields && isMap ? (field.normal?.(null) ?? {}) : {};
    return [name, isMap ? { ...absent, ...(value as object) } : value, field.fresh] as const;
  });
  const differs = ([name, value, fresh]: (typeof read)[number]) =>
    name === "name" || name === "plan" || canonical(value) !== canonical(fresh);
  const written = read.filter((one) => one[1] !== undefined && (allFields || differs(one)));
  return Object.fromEntries(written.map(([name, value]) => [name, value]));
}
