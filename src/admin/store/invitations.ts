/**
 * INVITATIONS: the first person who signs in through the named issuer with the invited, verified address gets a
 * membership by hand (docs/identity.md, Invitations). Until then the invitation holds the limits of the membership.
 * Implemented by `postgres`.
 */
import type { Budget } from "../../core/store/budget.ts";
import type { Actor } from "../../core/store/directory.ts";
import type { memberRoles } from "../../core/store/people.ts";
import type { Page, PageOf, Repeat, Repeated } from "./page.ts";

export const invitationStates = ["open", "taken", "revoked", "expired"] as const;
export type InvitationState = (typeof invitationStates)[number];

export interface NewInvitation {
  /** `inv_` + UUIDv7 hex. */
  id: string;
  organizationId: string;
  teamId: string | null;
  role: (typeof memberRoles)[number];
  issuer: string;
  /** The invited address in lower case. */
  email: string;
  /** The limits that the person will have; null: no limits of the person's own. */
  limits: Budget | null;
}

export interface StoredInvitation extends NewInvitation {
  /** The organization's slug. */
  organization: string;
  team: string | null;
  createdAt: Date;
  createdBy: Actor;
  expiresAt: Date;
  state: InvitationState;
  /** The time at which the invitation was taken (accepted by a sign-in), was revoked or expired; null: it is open. */
  endedAt: Date | null;
  endedBy: Actor | null;
  /** The person who has taken (accepted) the invitation. */
  personId: string | null;
}

/** The days for which an invitation is open. */
export const invitation_days = 14;
/** The most open invitations of an organization. */
export const openInvitations_max = 1_000;
/** The days for which an invitation is kept after it is no longer open. */
export const invitationKept_days = 90;

export interface InvitationQuery extends Page {
  organizationId?: string | undefined;
  state?: InvitationState | undefined;
}

export interface InvitationAdministration {
  /**
   * Creates an invitation, or returns the reason why not. `member`: somebody with this address is in the organization.
   * `already`: the address has an open invitation. `too_many`: too many invitations are open.
   */
  createInvitation(
    wanted: NewInvitation,
    actor: Actor,
    repeat?: Repeat,
  ): Promise<StoredInvitation | Repeated | "member" | "already" | "too_many">;
  findInvitation(id: string): Promise<StoredInvitation | null>;
  /** Pages through the invitations in the order in which they were made. */
  pageInvitations(query: InvitationQuery): Promise<PageOf<StoredInvitation>>;
  /** Revokes an invitation. `not_open`: the invitation was taken or revoked, or has expired. */
  revokeInvitation(id: string, actor: Actor): Promise<StoredInvitation | "not_open" | null>;
}
