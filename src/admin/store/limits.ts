/**
 * LIMITS: values that belong to organizations, teams, people in organizations, and keys, for all models or for a pattern of
 * them (docs/limits.md). One interface for all four; implemented by `postgres`.
 */
import { createHash } from "node:crypto";
import type { Budget } from "../../core/store/budget.ts";
import type { Actor } from "../../core/store/directory.ts";
import { bare } from "../../core/store/ids.ts";
import type { StandingSubject } from "../../features/telemetry/store/standing.ts";
import type { Stale } from "./change.ts";
import type { Page, PageOf } from "./page.ts";

/** Whose limits they are: the ID of an organization, a team, a person or a key. */
export interface LimitSubject {
  subject: StandingSubject;
  id: string;
  organizationId: string;
}

/**
 * Where a limit comes from: `team` and `organization` are the limits that a team or an organization gives to its keys
 * or its people.
 */
export type LimitOrigin = "own" | "team" | "organization" | "plan";

/** A temporary increase: limits that are in force until an instant. */
export interface Raise {
  /** The models that the raise is for; "": all. */
  models: string;
  /** The raised limits. Each is above the limit that it raises; null: not raised. */
  limits: Budget;
  until: Date;
  setAt: Date;
  setBy: Actor;
}

/** The stored values of a subject. In each value, null sets nothing, and `not_limited` means that nothing limits. */
export interface LimitValues {
  own: Budget;
  /**
   * The limits of the subject's keys that have no limits of their own; only organizations and teams have this value.
   */
  keys: Budget;
  /**
   * The limits of the subject's people who have no limits of their own; only organizations and teams have this value.
   */
  members: Budget;
  /** The subject's own limits for models, by their patterns. */
  models: ReadonlyMap<string, Budget>;
  /** The raises in force. */
  raises: readonly Raise[];
}

export interface SubjectLimits extends LimitSubject, LimitValues {
  /** The ID by which the ledger and the standings (used shares of limits) know the subject. */
  countedId: string;
  /**
   * The IDs by which the ledger and the standings know the subject's own limits for models, by the patterns of the
   * models.
   */
  countedModels: ReadonlyMap<string, string>;
  /** The slug of an organization, or the name of another subject. */
  name: string | null;
  /** The limits in force without raises; null: not limited. */
  inForce: Budget;
  origins: { readonly [Name in keyof Budget]: LimitOrigin | null };
  version: number;
}

/** A raise that is to be set. */
export type NewRaise = Pick<Raise, "models" | "limits" | "until">;

/** The values that are to be set; those that are left out stay. */
export interface LimitsChange extends Partial<Pick<LimitValues, "own" | "keys" | "members" | "models">> {
  raises?: readonly NewRaise[];
}

export interface LimitAdministration {
  /** The limits of a subject; null if there is no such subject. */
  limitsOf(subject: LimitSubject): Promise<SubjectLimits | null>;
  /**
   * Pages through the limits of those teams, people or keys of an organization that still exist, in the order of their
   * IDs.
   */
  pageLimits(
    page: Page & { organizationId: string; of: Exclude<StandingSubject, "organization"> },
  ): Promise<PageOf<SubjectLimits>>;
  /**
   * Locks the subject, passes its values to `patch`, and sets what `patch` returns. The new values are in force at
   * once, for running requests too. When this returns, the new limits also count what the subject had used before it
   * was limited. `closed`: the organization is closed.
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
