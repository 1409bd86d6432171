/**
 * The administration of PEOPLE: lists of people, and the memberships, suspensions and erasures by administrators.
 * Implemented by `postgres`.
 */
import type { Actor } from "../../core/store/directory.ts";
import type { NamedMembership } from "../../core/store/people.ts";
import type { KnownPerson, People } from "../../features/identity/store/people.ts";
import type { Stale } from "./change.ts";
import type { OverShare, Page, PageOf } from "./page.ts";

export interface PersonQuery extends Page, OverShare {
  organizationId?: string | undefined;
  teamId?: string | undefined;
  /** Part of an e-mail address or a name; case does not matter. */
  search?: string | undefined;
  suspended?: boolean | undefined;
  /** Only people for whom something was set by hand: a membership, limits of their own, or a suspension. */
  byHand?: boolean | undefined;
}

/**
 * The person after a change, or the reason why nothing changed. `last_admin`: nobody could have administered the
 * service afterwards (`administrators.ts`).
 */
export type PersonChanged = KnownPerson | Stale<KnownPerson> | "last_admin" | null;

export interface PeopleAdministration extends Pick<People, "findPerson"> {
  /** Whether the person has or had a membership or a key in the organization. */
  wasIn(id: string, organizationId: string): Promise<boolean>;
  /** Pages through people in the order of their creation. */
  pagePeople(query: PersonQuery): Promise<PageOf<KnownPerson>>;
  /**
   * Suspends a person, whose keys and tokens get 403 `person_suspended` on every node within a second, and whose
   * running requests end.
   */
  suspendPerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  resumePerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  /**
   * Erases the identity: subject, e-mail, name and groups. The memberships end, and the keys are revoked. If the person
   * signs in again later, the same ID returns, without the memberships and limits that were given by hand; a suspension
   * stays.
   */
  forgetPerson(id: string, actor: Actor, version?: number | null): Promise<PersonChanged>;
  /**
   * Gives a membership by hand. It replaces an earlier membership by hand for the same organization, or for the
   * service.
   */
  giveMembership(
    id: string,
    membership: NamedMembership,
    actor: Actor,
    version?: number | null,
  ): Promise<PersonChanged | "no_organization" | "no_team">;
  /**
   * Takes away a membership that was given by hand; a membership by a rule of the configuration then takes effect
   * again. `organizationId` null: the membership of the service.
   */
  takeMembership(
    id: string,
    organizationId: string | null,
    actor: Actor,
    version?: number | null,
  ): Promise<PersonChanged | "no_membership">;
}
