/**
 * ADMINISTRATORS of the service: people with the role `admin` who are not suspended, and operators with that role and without
 * an expiry. No act takes the last one away; only time and the issuer can (docs/identity.md, The last administrator).
 * Implemented by `postgres`.
 */
import { minute } from "../../core/time/written.ts";

export interface AdministratorsOutlook {
  /** Whether there is an administrator as the beginning of this file defines them. */
  isLasting: boolean;
  /**
   * The latest instant at which somebody lost or will lose an administrator's rights without anybody's act: an operator
   * who expires, or a person whose role a rule no longer gives. Null: there is none.
   */
  endsAt: Date | null;
  /** The store's clock when this was read. */
  readAt: Date;
}

const warned_ms = 14 * 86_400_000;

/**
 * A warning shortly before or after the rights of the last administrator end, with what to do; null: there is nothing
 * to warn of. Pure.
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
