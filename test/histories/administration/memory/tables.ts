// The tables that the limits of people depend on, in memory.

import type { StoredKey } from "../../../../src/admin/store/key.ts";
import type { Organization } from "../../../../src/admin/store/organization.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { noLimits } from "../../../../src/core/store/plan.ts";
import type { KnownPerson, Membership } from "../../../../src/features/identity/store/people.ts";

export interface TeamRow {
  id: string;
  organizationId: string;
  name: string;
  version: number;
  isRemoved: boolean;
}

export interface PersonRow extends Omit<KnownPerson, "state" | "memberships" | "readAt"> {
  suspendedAt: Date | null;
  forgottenAt: Date | null;
}

export interface MembershipRow extends Pick<Membership, "role" | "source"> {
  personId: string;
  organizationId: string;
  teamId: string | null;
  isEnded: boolean;
}

/** A key's team is that of its subject. */
export type KeyRow = Omit<StoredKey, "organization" | "person" | "team">;

/** A team, a key, or a person in an organization, as the ledger knows it. */
export interface SubjectRow {
  id: string;
  organizationId: string;
  teamId: string | null;
  personId: string | null;
  budget: Budget;
}

/** A row of limit_value. */
export interface ValueRow {
  subjectId: string;
  organizationId: string;
  kind: "own" | "keys" | "members" | "raise";
  models: string;
  limits: Budget;
  until: Date | null;
  setAt: Date;
  setBy: string;
}

/**
 * The rows of the tables. Each is stored under its ID, except that limit values are stored by subject, kind and models,
 * and own limits in force by the organization.
 */
export interface Rows {
  organizations: Organization;
  ownLimits: Budget;
  people: PersonRow;
  memberships: MembershipRow;
  teams: TeamRow;
  subjects: SubjectRow;
  values: ValueRow;
  keys: KeyRow;
}
export type TableName = keyof Rows;

/** Rows are replaced and never changed in place, so a copy of the maps is a copy of the tables. */
export class Tables {
  readonly #tables = new Map<TableName, Map<string, unknown>>();

  table<Name extends TableName>(name: Name): Map<string, Rows[Name]> {
    let table = this.#tables.get(name);
    if (!table) {
      table = new Map();
      this.#tables.set(name, table);
    }
    return table as Map<string, Rows[Name]>;
  }

  copied(): Tables {
    const copy = new Tables();
    for (const [name, table] of this.#tables) copy.#tables.set(name, new Map(table));
    return copy;
  }
}

/** What can be read: what is committed, or what a transaction sees. */
export interface Reading {
  now: Date;
  get<Name extends TableName>(name: Name, id: string): Rows[Name] | undefined;
  all<Name extends TableName>(name: Name): Rows[Name][];
}

/** The id by which the ledger names a person in an organization. */
export const memberId = (organizationId: string, personId: string): string =>
  `mem_${organizationId.slice(-16)}${personId.slice(-16)}`;

/** The membership in force of a person in an organization: one given by hand comes before one given by a rule. */
export function membershipIn(of: Reading, organizationId: string, personId: string): MembershipRow | undefined {
  const there = of
    .all("memberships")
    .filter((one) => one.personId === personId && one.organizationId === organizationId && !one.isEnded);
  return there.find(({ source }) => source === "hand") ?? there[0];
}

/** The team of the membership in force, unless the team was removed. */
export function teamOf(of: Reading, organizationId: string, personId: string): TeamRow | null {
  const { teamId = null } = membershipIn(of, organizationId, personId) ?? {};
  return teamId === null ? null : teamIn(of, teamId);
}

export function teamIn(of: Reading, id: string): TeamRow | null {
  const team = of.get("teams", id);
  return team && !team.isRemoved ? team : null;
}

/** The limits of a subject's value for all models. */
export const limitValueOf = (of: Reading, subjectId: string, kind: ValueRow["kind"]): Budget | undefined =>
  of.get("values", `${subjectId} ${kind} `)?.limits;

/** The only plan in these histories. */
export const smallPlan = { ...noLimits, name: "small", week: 600 };
