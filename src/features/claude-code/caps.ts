/**
 * The limits of a caller that Claude Code shows: the windows of organization, team and key that have a limit. Claude
 * Code shows no limits for single models. Pure.
 */
import { type SubjectReading, type WindowKind, type WindowReadings, windowKinds } from "../../core/store/ledger.ts";

export interface Cap {
  kind: WindowKind;
  used: number;
  limit: number;
  /**
   * When the window ends, in Unix seconds. Headers and `/api/oauth/usage` must give the same second, or Claude Code
   * shows no amounts.
   */
  resetsAt_s: number;
}

export function capsOf(
  windows: WindowReadings,
  subjects: readonly Pick<SubjectReading, "windows" | "models">[] = [],
): Cap[] {
  const all = [...subjects.filter((one) => !one.models).map((one) => one.windows), windows];
  return all.flatMap((readings) =>
    windowKinds.flatMap((kind) => {
      const { used, limit, resetAt } = readings[kind];
      return limit === null ? [] : [{ kind, used, limit, resetsAt_s: Math.ceil(resetAt.getTime() / 1000) }];
    }),
  );
}

/** The limit of which the largest share is used; null if there are no limits. */
export function fullest(caps: readonly Cap[]): Cap | null {
  return caps.reduce<Cap | null>((most, one) => (most && shareOf(most) >= shareOf(one) ? most : one), null);
}

/** The used share of a limit, 0 to 1: for a limit of 0 it is 1, and without use 0. */
export const shareOf = ({ used, limit }: Pick<Cap, "used" | "limit">) => (limit <= 0 ? 1 : Math.max(0, used) / limit);

/** Claude Code's names for periods. It has no name for five hours. */
export const periods: Partial<Record<WindowKind, string>> = { week: "weekly", month: "monthly" };
