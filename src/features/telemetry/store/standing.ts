/**
 * STANDING: how much of its limits an organization, a team, a person or a key has used, at one instant. Limits,
 * notices, metrics and management use the same value (docs/design/usage.md, Standing).
 */
import { percentOf } from "../../../core/inference/money.ts";
import type { LimitedBy } from "../../../core/store/budget.ts";
import type { IdPrefix } from "../../../core/store/ids.ts";
import { type SubjectReading, type WindowKind, windowKinds } from "../../../core/store/ledger.ts";

/**
 * The subjects whose usage the ledger counts, with the prefixes of their ids. `mem_` is a person in one organization:
 * the ledger counts the person there, across all keys.
 */
export const standingSubjects = {
  organization: "org_",
  team: "team_",
  person: "mem_",
  key: "key_",
} as const satisfies Record<LimitedBy, IdPrefix>;
export type StandingSubject = keyof typeof standingSubjects;

/** The prefix of the ids of limits for models, which the ledger counts as subjects too. */
export const modelLimitsPrefix = "lim_" as const satisfies IdPrefix;

export interface Standing extends Pick<SubjectReading, "models" | "windows" | "concurrentRequests" | "running"> {
  /** The id of the subject; if `models` is set, the id of the subject's limits for those models. */
  id: string;
  organizationId: string;
  /** The store's clock at the reading. */
  at: Date;
}

export interface Standings {
  /**
   * The standings (how much of its limits each subject has used) of organizations, teams, members, keys and limits for
   * models, by their ids. Subjects without a limit are left out: the ledger does not count the use of such a team or
   * key.
   */
  standings(ids: readonly string[]): Promise<ReadonlyMap<string, Standing>>;
  /**
   * The standings of the subjects that have used the largest shares of a limit, the largest share first. A subject is
   * listed once more for each of its limits for models. Subjects without a limit are left out.
   */
  nearest(subject: StandingSubject, limit: number): Promise<Standing[]>;
  /** For each percentage in `nearShares`, how many subjects of each kind have used at least this much of a limit. */
  nearLimits(): Promise<NearLimit[]>;
}

/** Metrics count the subjects that have used at least these percentages of a limit. */
export const nearShares = [50, 80, 95, 100] as const;
export type NearShare = (typeof nearShares)[number];

/** How many subjects of a kind have used at least `percent` of a window's limit. */
export interface NearLimit {
  subject: StandingSubject;
  percent: NearShare;
  count: number;
}

export interface Tightest {
  kind: WindowKind;
  percent: number;
}

/** The window with the largest used share of its limit; null if no window is limited. Pure. */
export function tightestWindow({ windows }: Pick<Standing, "windows">): Tightest | null {
  const limited = windowKinds.filter((kind) => windows[kind].limit !== null);
  const shares = limited.map((kind) => ({ kind, percent: percentOf(windows[kind].used, windows[kind].limit) }));
  return shares.reduce<Tightest | null>((most, one) => (most && most.percent >= one.percent ? most : one), null);
}
