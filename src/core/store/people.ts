/**
 * PEOPLE: those who sign in through an issuer, and their rights. A person is one subject of one issuer; a membership is a
 * role in an organization, or for the service. Rules give memberships anew each time the issuer confirms the person;
 * those given by hand stay. Implemented by `postgres`; docs/identity.md describes it for operators.
 *
 * To let somebody in, call `confirmPerson` of src/core/auth/confirm.ts, which asks the rules in force and then `confirm` here.
 */

import type { Stale } from "./change.ts";
import type { Actor, Scope } from "./directory.ts";
import type { OverShare, Page, PageOf } from "./page.ts";

/** `service`: a workload. */
export const personKinds = ["person", "service"] as const;
export type PersonKind = (typeof personKinds)[number];

/** `member` and `organization-admin` are roles in an organization, `viewer` and `admin` for the service. */
export const memberRoles = ["member", "organization-admin"] as const;
export const serviceRoles = ["viewer", "admin"] as const;
export const personRoles = [...memberRoles, ...serviceRoles] as const;
export type PersonRole = (typeof personRoles)[number];

export interface Person {
  /** `per_` + UUIDv7 hex. */
  id: string;
  issuer: string;
  /** Null: forgotten. */
  subject: string | null;
  kind: PersonKind;
  email: string | null;
  /** Whether the issuer says that the address is the person's. */
  isEmailVerified: boolean;
  name: string | null;
  /** The groups of the last answer that had them. */
  groups: string[];
  /** The instant of that answer; null: there was none. */
  groupsAt: Date | null;
  createdAt: Date;
  /** When the issuer last confirmed the person. */
  confirmedAt: Date;
  /** Null: not suspended. */
  suspendedAt: Date | null;
  /** Sign-ins, sessions and tokens that were issued before this instant no longer count; null: all do. */
  notBefore: Date | null;
  /** Null: not forgotten. */
  forgottenAt: Date | null;
  /** Rises with each change by an administrator. */
  version: number;
}

/** A membership in force. */
export interface Membership {
  /** Null: the role is for the service. */
  organizationId: string | null;
  /** The slug of the organization. */
  organization: string | null;
  team: { id: string; name: string } | null;
  role: PersonRole;
  /** The most that the person's tokens and keys there may do. */
  scopes: Scope[];
  /** Public ids of models; null: every model. */
  models: string[] | null;
  /** One that was given by hand stays, and counts before one by a rule. */
  source: "rule" | "hand";
  createdAt: Date;
  /** The actor; `service` for one by a rule. */
  createdBy: Actor;
}

/** A membership as a rule or an administrator names it: the organization by slug or ID, the team by name or ID. */
export interface NamedMembership {
  organization: string | null;
  team: string | null;
  role: PersonRole;
  scopes: readonly Scope[];
  models: readonly string[] | null;
}

export interface KnownPerson {
  person: Person;
  /** At most one in an organization and one for the service: by hand, else by the first rule. */
  memberships: Membership[];
  /** The store's clock at the reading. It decides about ages, never a node's. */
  readAt: Date;
}

/** The claims of an issuer about somebody. Undefined fields stay as they were. */
export interface Confirmation {
  /** `per_` + UUIDv7 hex, for somebody who is new. */
  id: string;
  issuer: string;
  subject: string;
  kind: PersonKind;
  email?: string | null | undefined;
  isEmailVerified?: boolean | undefined;
  name?: string | null | undefined;
  groups?: readonly string[] | undefined;
  /** The instant of the claims; absent: now. Older claims do not replace newer ones. */
  at?: Date | undefined;
  /** The memberships by rules, of which the first in an organization counts. Null: the memberships stay. */
  memberships: readonly NamedMembership[] | null;
  /** If the person returns to an organization after longer than this, the old keys there are revoked. Null: they work again. */
  keysEndAfter_ms?: number | null | undefined;
}

export interface Confirmed extends KnownPerson {
  isNew: boolean;
  /** Memberships whose organization or team does not exist; they were passed over. */
  missing: NamedMembership[];
}

/** People, as sign-ins, sessions and tokens need them. */
export interface People {
  findPerson(id: string): Promise<KnownPerson | null>;
  personOf(issuer: string, subject: string): Promise<KnownPerson | null>;
  /**
   * Finds or creates the person, and stores the claims. Memberships by rules become those that are named; one
   * that is lost ends what runs by it, on every node. A suspended person is confirmed and stays suspended.
   */
  confirm(confirmation: Confirmation): Promise<Confirmed>;
  /** Ends everything that was issued to the person until now. Null: there is no such person. */
  endIssued(id: string, actor: Actor): Promise<Person | null>;
  /**
   * Deletes some of the people who never had a membership, a key, a limit or a suspension, and whom their issuer has not
   * confirmed for 30 days. Returns how many.
   */
  deleteVisitors(): Promise<number>;
  /**
   * The key of a person's identity tokens in this organization, made at first use; as all keys of the person, it follows the
   * membership to its team. Null: the membership, the person or the organization is gone.
   */
  tokenKey(input: { id: string; personId: string; organization: string }): Promise<TokenKey | null>;
}

/** A key of kind `jwt`. */
export interface TokenKey {
  id: string;
  /** The hash by which the directory finds the key. No text that a client can send has it. */
  secretHash: Uint8Array;
}

export interface PersonQuery extends Page, OverShare {
  organizationId?: string | undefined;
  /** Only people whose membership is in this team. */
  teamId?: string | undefined;
  /** Part of an e-mail address or a name, in any case. */
  search?: string | undefined;
  isSuspended?: boolean | undefined;
  /** Only people for whom something was set by hand: a membership, limits of their own, or a suspension. */
  isByHand?: boolean | undefined;
}

/**
 * The person after a change, or why nothing changed. `last_admin`: nobody could administer any more (`administrators.ts`).
 */
export type PersonChanged = KnownPerson | Stale<KnownPerson> | "last_admin" | null;

export interface PeopleAdministration extends Pick<People, "findPerson" | "personOf" | "endIssued"> {
  /** Pages through people in the order of their creation. */
  pagePeople(query: PersonQuery): Promise<PageOf<KnownPerson>>;
  /** The person's keys and tokens get 403 `person_suspended` on every node within a second, and running requests end. */
  suspendPerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  resumePerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  /**
   * Erases the identity: subject, e-mail, name and groups. The memberships end, and the keys are revoked. If the issuer
   * confirms the person again, the same ID returns, without what was given by hand; a suspension stays.
   */
  forgetPerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  /** Gives a membership by hand, in place of an earlier one by hand there. */
  giveMembership(
    id: string,
    membership: NamedMembership,
    actor: Actor,
    version?: number | null,
  ): Promise<PersonChanged | "no_organization" | "no_team">;
  /** Takes one that was given by hand; one by a rule then counts again. `organizationId` null: the service's. */
  takeMembership(
    id: string,
    organizationId: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<PersonChanged | "no_membership">;
}
