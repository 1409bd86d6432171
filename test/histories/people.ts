// People in histories (simulated runs). The first person has all keys but the last, which is the second person's. A
// person may be in one team of each organization. Each limit of a person there is the person's own, else the one for
// their team's members, else the one for the organization's members (docs/design/usage.md, Budgets). People move
// between teams and organizations while requests run.

import type { UsageLimits } from "../../src/core/store/ledger.ts";
import { limitsOfMember, type ModelPeople, type OwnLimits } from "../core/store/budget-model.ts";
import type { Chance } from "../faults/chance.ts";
import { isForModels } from "./models.ts";

const people = ["per_1", "per_2"] as const;
const acts = ["moves", "moves", "leaves", "leaves", "default", "own limits end"] as const;

/** A change of one person's team, organization or limits; the numbers select a person, a team and an organization. */
export interface PersonChange {
  kind: "person";
  /**
   * The change. `moves`: into another team. `leaves`: to another organization, of which the person then is a member.
   * `default`: the members of a team, or of the organization, get other limits.
   */
  act: (typeof acts)[number];
  person: number;
  team: number;
  toOrganization: number;
  limits: UsageLimits;
}

export const personOf = (keyId: string): string => (keyId.endsWith("_2") ? people[1] : people[0]);
export const personSubjectOf = (organizationId: string, person: string) => `${organizationId} ${person}`;

/**
 * The people of an organization at the beginning, and the limits that count for them in it; some people are never
 * limited in it.
 */
export function beganPeople(
  chance: Chance,
  organizationId: string,
  teams: readonly (string | null)[],
  limitsOf: (chance: Chance) => UsageLimits,
): { began: ModelPeople; limits: Map<string, UsageLimits> } {
  const counted = people.filter(() => chance.next() < 0.6).map((person) => personSubjectOf(organizationId, person));
  const some = (ids: readonly (string | null)[], probability: number) =>
    new Map(ids.flatMap((id) => (id !== null && chance.next() < probability ? [[id, limitsOf(chance)] as const] : [])));
  const began: ModelPeople = {
    own: some(counted, 0.4),
    defaults: some([...teams, organizationId], 0.5),
    memberships: new Map(
      counted.flatMap((id) => (chance.next() < 0.7 ? [[id, teams[chance.below(teams.length)]!] as const] : [])),
    ),
  };
  return { began, limits: new Map(counted.map((id) => [id, limitsOfMember(began, organizationId, id)])) };
}

export function personChangeOf(chance: Chance, limits: UsageLimits): PersonChange {
  const [act, person, team, toOrganization] = [chance.pick(acts), chance.below(2), chance.below(3), chance.below(4)];
  return { kind: "person", act, person, team, toOrganization, limits };
}

/**
 * The people and limits of an organization after a change. `there`: this organization is the one that the person joins.
 */
export function changedPeople(
  now: OwnLimits,
  organizationId: string,
  { act, person, team, limits }: PersonChange,
  at: "here" | "there",
): OwnLimits {
  const id = personSubjectOf(organizationId, people[person]!);
  if (!now.people) return now;
  const { own, defaults, memberships } = now.people;
  const teams = [null, ...new Set(now.teams.values())].filter((one) => one === null || now.limits.has(one));
  const to = teams[team % teams.length]!;
  if (act === "moves" || (act === "leaves" && at === "there")) {
    const keys = [...now.teams].map(([keyId, was]) => [keyId, personOf(keyId) === people[person] ? to : was] as const);
    const moved = { ...now.people, memberships: new Map(memberships).set(id, to) };
    return under({ ...now, teams: new Map(keys) }, organizationId, moved);
  }
  if (act === "leaves")
    return under(now, organizationId, {
      ...now.people,
      memberships: new Map([...memberships].filter(([one]) => one !== id)),
    });
  if (act === "default")
    return under(now, organizationId, { ...now.people, defaults: new Map(defaults).set(to ?? organizationId, limits) });
  return under(now, organizationId, { ...now.people, own: new Map([...own].filter(([one]) => one !== id)) });
}

export function limitedPerson(now: OwnLimits, organizationId: string, id: string, limits: UsageLimits): OwnLimits {
  return under(now, organizationId, { ...now.people!, own: new Map(now.people!.own).set(id, limits) });
}

/**
 * Gives each person the limits that count for them now. If a person's limits stay the same, so does the object that
 * holds them.
 */
function under(now: OwnLimits, organizationId: string, people: ModelPeople): OwnLimits {
  const limits = new Map(now.limits);
  const isPerson = (id: string) => id.includes(" per_") && !isForModels(id);
  for (const [id] of now.limits) if (isPerson(id)) limits.set(id, limitsOfMember(people, organizationId, id));
  return { ...now, limits, people };
}
