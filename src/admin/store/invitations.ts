/**
 * INVITATIONS: the first person who signs in by the named issuer with the verified address gets a membership by hand
 * (docs/identity.md, Invitations). Until then the limits of the invitation are kept with it. Implemented by `postgres`.
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
  /** The address without capital letters. */
  email: string;
  /** The own limits of the person; null: none. */
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
  /** When somebody took the invitation, or it was revoked. */
  endedAt: Date | null;
  endedBy: Actor | null;
  /** The person who has taken the invitation. */
  personId: string | null;
}

/** How long an invitation can be taken. */
export const invitation_days = 14;
/** How many invitations of an organization can be open. */
export const openInvitations_max = 1_000;
/** How long an invitation is kept after it can no longer be taken. */
export const invitationKept_days = 90;

export interface InvitationQuery extends Page {
  organizationId?: string | undefined;
  state?: InvitationState | undefined;
}

export interface InvitationAdministration {
  /**
   * Creates an invitation, or returns why not. `member`: somebody with this address is in the organization. `already`:
   * the address is invited. `too_many`: too many invitations are open.
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
