/**
 * LIMITS: values that belong to organizations, teams, people in organizations, and keys, for all models or for a pattern of
 * them (docs/limits.md). One interface for all four; implemented by `postgres`.
 */
import { createHash } from "node:crypto";
import type { Budget } from "../../core/store/budget.ts";
import type { Stale } from "../../core/store/change.ts";
import type { Actor } from "../../core/store/directory.ts";
import { bare } from "../../core/store/ids.ts";
import type { Page, PageOf } from "../../core/store/page.ts";
import type { StandingSubject } from "../../core/store/standing.ts";

/** Whose limits they are: the ID of an organization, a team, a person or a key. */
export interface LimitSubject {
  subject: StandingSubject;
  id: string;
  organizationId: string;
}

/** Where a limit comes from: `team` and `organization` are what these give to their keys or their people. */
export type LimitOrigin = "own" | "team" | "organization" | "plan";

/** The limits in force until an instant. */
export interface Raise {
  /** The models that it is for; "": all. */
  models: string;
  /** Each is above the one below it; null: not raised. */
  limits: Budget;
  until: Date;
  setAt: Date;
  setBy: Actor;
}

/** The stored values of a subject. In each value null says nothing, and `not_limited` that nothing limits. */
export interface LimitValues {
  own: Budget;
  /** The limits of its keys that have nothing of their own; of organizations and teams. */
  keys: Budget;
  /** The limits of its people who have nothing of their own; of organizations and teams. */
  members: Budget;
  /** The subject's own limits for models, by their patterns. */
  models: ReadonlyMap<string, Budget>;
  /** The raises in force. */
  raises: readonly Raise[];
}

export interface SubjectLimits extends LimitSubject, LimitValues {
  /** The ID by which the ledger and standings know it. */
  countedId: string;
  /** The same of its own limits for models, by their patterns. */
  countedModels: ReadonlyMap<string, string>;
  /** The slug of an organization; else the name. */
  name: string | null;
  /** The limits in force without raises; null: not limited. */
  inForce: Budget;
  origins: { readonly [Name in keyof Budget]: LimitOrigin | null };
  version: number;
}

/** A raise as it is to be. */
export type NewRaise = Pick<Raise, "models" | "limits" | "until">;

/** The values as they are to be; those that are left out stay. */
export interface LimitsChange extends Partial<Pick<LimitValues, "own" | "keys" | "members" | "models">> {
  raises?: readonly NewRaise[];
}

export interface LimitAdministration {
  /** Null: there is no such subject. */
  limitsOf(subject: LimitSubject): Promise<SubjectLimits | null>;
  /** Teams, people or keys of an organization that are not gone, in the order of their IDs. */
  pageLimits(
    page: Page & { organizationId: string; of: Exclude<StandingSubject, "organization"> },
  ): Promise<PageOf<SubjectLimits>>;
  /**
   * Sets what `patch` gives for the values as they are when the subject is locked; in force at once, for running requests too.
   * When this returns, what the subject had used before it was limited counts, too. `closed`: the organization is closed.
   */
  updateLimits(
    subject: LimitSubject,
    change: { actor: Actor; version?: number | null | undefined },
    patch: (now: SubjectLimits, organization: SubjectLimits) => LimitsChange,
  ): Promise<SubjectLimits | Stale<SubjectLimits> | "closed" | null>;
}

/** The ID by which the ledger counts a person in an organization: `usage_member` of the database. */
export function memberIdOf(organizationId: string, personId: string): string {
  const text = bare(organizationId, "org_") + bare(personId, "per_");
  return `mem_${createHash("md5").update(text).digest("hex")}`;
}
