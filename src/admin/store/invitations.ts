/**
 * INVITATIONS: the first person who signs in through the named issuer with the invited, verified address gets a
 * membership by hand (docs/identity.md, Invitations). Until then the invitation holds the limits of the membership.
 * Implemented by `postgres`.
 */
import type { TSchema } from "typebox";
import Type from "typebox";
import { id, instant } from "../../core/operations/fields.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import type { Actor } from "../../core/store/directory.ts";
import { memberRoles } from "../../core/store/people.ts";
import type { Page, PageOf, Repeat, Repeated } from "./page.ts";

export const invitationStates = ["open", "taken", "revoked", "expired"] as const;
export type InvitationState = (typeof invitationStates)[number];

/**
 * The fields of an invitation. `limits`: the schema of the limits that the person will have,
 * or null for none of their own.
 */
export const invitationFields = <Limits extends TSchema>(limits: Limits) => ({
  id: id("inv"),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug." }),
  team_id: nullable(id("team")),
  team: nullable(Type.String({ description: "Its name. Null: none, or it is gone." })),
  role: oneOf([...memberRoles]),
  issuer: Type.String({ description: "The issuer that must have verified the address." }),
  email: Type.String({ description: "Without capital letters." }),
  limits,
  created_at: instant("When it was made."),
  created_by: Type.String({ description: "Who invites." }),
  expires_at: instant("From then on it cannot be taken."),
  state: oneOf([...invitationStates]),
  ended_at: nullable(instant("When it was taken or revoked, or expired.")),
  ended_by: nullable(Type.String({ description: "The actor; `service` where a sign-in took it." })),
  person_id: nullable(id("per")),
});
const Stored = Type.Object(invitationFields(Type.Unsafe<Budget | null>({})));
export type StoredInvitation = Value<typeof Stored>;
export type NewInvitation = Pick<
  StoredInvitation,
  "id" | "organizationId" | "teamId" | "role" | "issuer" | "email" | "limits"
>;

export const invitation_days = 14;
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
