// Checks that no charge exceeds a limit of a key, a person or a team, while these limits change and raises (temporary
// increases of a limit) begin and end during requests.

import { isForgotten, type Row } from "./ledger-book.ts";
import type { Received } from "./load.ts";

/** A change of the five-hour limit of a key, a person or a team; its time is by this process's clock. */
export interface LimitChange {
  /** UUID of the key, the person's subject or the team. */
  subject: string;
  /** The time just before the change was sent to the store, by this process's clock. */
  at_ms: number;
  session: number | null;
  /** Whether the store confirmed the change. An unconfirmed change may be in force or not. */
  isConfirmed: boolean;
}

/** A raise of the five-hour limit of a key, a person, a team or an organization. */
export interface RaiseSet {
  subject: string;
  /** The time just before the raise was sent to the store, by this process's clock. */
  from_ms: number;
  /**
   * The raise's end by the store's clock. That clock is only ever ahead of this process's, so when this process's clock
   * shows this time, the raise has ended.
   */
  until_ms: number;
  session: number;
}

/** A settled request as its client saw it, with its record in the ledger. */
export interface Charge {
  entry: Received;
  row: Row;
}

/**
 * How long a new limit may take to apply to a running request: requests are reviewed within a second of a change, but a
 * stopped node or store delays that for as long as its outage lasts.
 */
const review_ms = 8_000;
/** How long outages may delay a settlement. */
const settled_ms = 8_000;

/**
 * One sentence for each charge that exceeded a limit of a key, a person or a team. Only charges that were certainly
 * settled before a request began count as used before it, so a correct ledger gets no objection.
 */
export function pastSubjectLimits(
  charges: readonly Charge[],
  changes: readonly LimitChange[],
  raises: readonly RaiseSet[],
  forgotten: Parameters<typeof isForgotten>[1],
): string[] {
  const certain = changes.map((one) => ({ ...one, isConfirmed: one.isConfirmed && !mayBeLost(one, forgotten) }));
  return [...Map.groupBy(certain, ({ subject }) => subject)].flatMap(([subject, ofSubject]) => {
    const counted = charges
      .filter(({ row }) => row.charged > 0 && row.session_used_after !== null && row.subjects?.includes(subject))
      .filter(({ entry }) => !isForgotten(entry, forgotten))
      .toSorted((one, other) => one.entry.ended_ms - other.entry.ended_ms);
    return counted.flatMap(({ entry, row }) => {
      const limit = Math.max(highestLimit(ofSubject, entry), highestRaise(raises, subject, entry));
      const before = counted
        .filter((one) => one.row.session_starts_at === row.session_starts_at)
        .filter((one) => one.entry.ended_ms + settled_ms < entry.began_ms)
        .reduce((sum, one) => sum + one.row.charged, 0);
      if (before + row.charged <= limit) return [];
      return [`${entry.marker} (${entry.requestId}): ${subject} stands at ${before + row.charged} of ${limit} nanos`];
    });
  });
}

/**
 * Whether a failover may have lost a change that the store had confirmed. If so, the earlier value may be in force
 * again.
 */
function mayBeLost({ at_ms }: { at_ms: number }, forgotten: Parameters<typeof isForgotten>[1]): boolean {
  return isForgotten({ began_ms: at_ms, ended_ms: at_ms }, forgotten);
}

/**
 * The highest limit that may have been in force while the request ran. Before the first change, nothing was limited.
 */
function highestLimit(changes: readonly LimitChange[], entry: Received): number {
  const from_ms = entry.began_ms - review_ms;
  const last = changes.findLastIndex(({ at_ms, isConfirmed }) => isConfirmed && at_ms <= from_ms);
  if (last === -1) return Number.POSITIVE_INFINITY;
  const possible = changes.slice(last).filter(({ at_ms }) => at_ms <= entry.ended_ms + review_ms);
  return Math.max(...possible.map(({ session }) => session ?? Number.POSITIVE_INFINITY));
}

/** The highest raise of the subject's limit that may have been in force while the request ran. */
export function highestRaise(raises: readonly RaiseSet[], subject: string, entry: Received): number {
  const possible = raises.filter(
    (one) =>
      one.subject === subject &&
      one.from_ms <= entry.ended_ms + review_ms &&
      one.until_ms >= entry.began_ms - review_ms,
  );
  return Math.max(...possible.map(({ session }) => session), Number.NEGATIVE_INFINITY);
}
