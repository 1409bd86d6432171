/**
 * ADMINISTRATORS of the service: people with the role `admin` who are not suspended, and operators with that role and
 * without an expiry. No verb removes the last administrator; only an expiry or the issuer can (docs/identity.md, The
 * last administrator). Implemented by `postgres`.
 */
import { minute } from "../../core/time/written.ts";

export interface AdministratorsOutlook {
  /** Whether there is an administrator, as the head of this file defines the term. */
  isLasting: boolean;
  /**
   * The latest instant at which rights of an administrator ended or will end by themselves: an operator expires, or a
   * rule no longer gives a person the role. Null: there is no such instant.
   */
  endsAt: Date | null;
  /** The time of the reading, by the store's clock. */
  readAt: Date;
}

const warned_ms = 14 * 86_400_000;

/**
 * The warning shortly before or after the rights of the last administrator end, with advice; null: there is nothing to
 * warn of. Pure.
 */
export function administratorsProblem({ isLasting, endsAt, readAt }: AdministratorsOutlook): string | null {
  if (isLasting || endsAt === null) return null;
  const left_ms = endsAt.getTime() - readAt.getTime();
  if (Math.abs(left_ms) > warned_ms) return null;
  const what =
    left_ms > 0
      ? `the last token that can administer expires at ${minute(endsAt)} UTC`
      : `nobody can administer over the network since ${minute(endsAt)} UTC`;
  return `${what}; on the machine of a node, run: sluice operator create NAME --role admin`;
}
