/**
 * LIMITS: the limits of organizations, teams, people in organizations, and keys, for all models or for the models that
 * match a pattern (docs/limits.md). One interface serves all four kinds of subjects; implemented by `postgres`.
 */
import { createHash } from "node:crypto";
import type { Budget } from "../../core/store/budget.ts";
import type { Actor } from "../../core/store/directory.ts";
import { bare } from "../../core/store/ids.ts";
import type { StandingSubject } from "../../features/telemetry/store/standing.ts";
import type { Stale } from "./change.ts";
import type { Page, PageOf } from "./page.ts";

/** The subject that limits apply to, with its ID: an organization, a team, a person or a key. */
export interface LimitSubject {
  subject: StandingSubject;
  id: string;
  organizationId: string;
}

/**
 * The source of a limit. `team` and `organization`: the default that the team or the organization sets for its keys or
 * its people.
 */
export type LimitOrigin = "own" | "team" | "organization" | "plan";

/** A temporary increase: limits that are in force until an instant. */
export interface Raise {
  /** The pattern of the models whose limits are raised; "": the limits for all models. */
  models: string;
  /** The raised limits. Each is above the limit that it raises; null: this limit is not raised. */
  limits: Budget;
  until: Date;
  setAt: Date;
  setBy: Actor;
}

/**
 * The stored values of a subject. A limit of null is not set, so that another source may set it; `not_limited` means
 * that there is no limit.
 */
export interface LimitValues {
  own: Budget;
  /** The default limits for the subject's keys; only organizations and teams have them. */
  keys: Budget;
  /** The default limits for the subject's people; only organizations and teams have them. */
  members: Budget;
  /** The subject's own limits for models, by their patterns. */
  models: ReadonlyMap<string, Budget>;
  /** The raises in force. */
  raises: readonly Raise[];
}

export interface SubjectLimits extends LimitSubject, LimitValues {
  /** The subject's ID in the ledger and in the standings (used shares of limits). */
  countedId: string;
  /**
   * The IDs in the ledger and in the standings of the subject's own limits for models, by the patterns of the models.
   */
  countedModels: ReadonlyMap<string, string>;
  /** The subject's name; an organization's slug. */
  name: string | null;
  /** The limits in force without raises; null: not limited. */
  inForce: Budget;
  origins: { readonly [Name in keyof Budget]: LimitOrigin | null };
  version: number;
}

export type NewRaise = Pick<Raise, "models" | "limits" | "until">;

/** The values that are to be set; values that are left out stay. */
export interface LimitsChange extends Partial<Pick<LimitValues, "own" | "keys" | "members" | "models">> {
  raises?: readonly NewRaise[];
}

export interface LimitAdministration {
  limitsOf(subject: LimitSubject): Promise<SubjectLimits | null>;
  /** Pages through the limits of the existing teams, people or keys of an organization, in the order of their IDs. */
  pageLimits(
    page: Page & { organizationId: string; of: Exclude<StandingSubject, "organization"> },
  ): Promise<PageOf<SubjectLimits>>;
  /**
   * Locks the subject, passes its values to `patch`, and sets the values that `patch` returns. They take effect
   * immediately, for running requests too. When this returns, the new limits also count the usage from before they were
   * set. `closed`: the organization is closed.
   */
  updateLimits(
    subject: LimitSubject,
    change: { actor: Actor; version?: number | null | undefined },
    patch: (now: SubjectLimits, organization: SubjectLimits) => LimitsChange,
  ): Promise<SubjectLimits | Stale<SubjectLimits> | "closed" | null>;
}

/** The ledger's ID of a person in an organization: `usage_member` in the database. */
export function memberIdOf(organizationId: string, personId: string): string {
  const text = bare(organizationId, "org_") + bare(personId, "per_");
  return `mem_${createHash("md5").update(text).digest("hex")}`;
}
