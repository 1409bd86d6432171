/**
 * RAISES: limits that count until an instant, on top of those of an organization's plan, a team, a person or a key. The
 * store's clock ends them (docs/design/usage.md, Raises).
 */
import type { Budget } from "./budget.ts";
import type { RateLimits } from "./rates.ts";
import type { StandingSubject } from "./standing.ts";

export interface Raise {
  /** The limits that were raised, each to its new value; null: it was not raised. */
  limits: Budget;
  /** From here on the limits below count again. */
  until: Date;
  setAt: Date;
  /** The actor. */
  setBy: string;
}

/** Whose limits are raised. */
export interface RaiseSubject {
  subject: StandingSubject;
  /** The id by which the ledger counts it: that of a person is `mem_` + hex. */
  id: string;
  organizationId: string;
  /** The id by which the audit log names it: that of a person is `per_` + hex. */
  audited: string;
}

export interface RaiseAdministration {
  /** The raises in force of organizations, teams, members and keys, by their ids. */
  raises(ids: readonly string[]): Promise<ReadonlyMap<string, Raise>>;
  /**
   * Sets the raise of a subject in the place of the one that it has; null ends that. `past`: it would have ended already,
   * by the store's clock. `none`: there is none to end. `closed`: the organization is closed, or gone.
   */
  setRaise(
    subject: RaiseSubject,
    raise: Pick<Raise, "limits" | "until"> | null,
    actor: string,
  ): Promise<Raise | "ended" | "none" | "past" | "closed">;
  /** The id by which the ledger counts a person in an organization. */
  memberId(organizationId: string, personId: string): Promise<string>;
}

/** A limit under a raise. A raise never lowers, and what is not limited stays so. */
export function raisedTo(limit: number | null, raise: number | null | undefined): number | null {
  return limit !== null && raise != null && raise > limit ? raise : limit;
}

/** The limits of a minute of a plan, under the raise of its organization. */
export function raisedRates({ requestsPerMinute, tokensPerMinute }: RateLimits, raise?: RateLimits | null): RateLimits {
  return {
    requestsPerMinute: raisedTo(requestsPerMinute, raise?.requestsPerMinute),
    tokensPerMinute: raisedTo(tokensPerMinute, raise?.tokensPerMinute),
  };
}
