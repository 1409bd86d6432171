/**
 * Checks the ledger against itself once an hour: one node of the fleet checks what has changed since the last time
 * (docs/design/metering.md, Audit), and every node learns the result. `sluice usage check` checks a whole year. Every
 * minute one node rolls up new records, so that a report has little to add.
 */
import { repeating } from "../../core/time/clock.ts";
import type { Books, LedgerDifference } from "./store/books.ts";

const every_ms = 3_600_000;
const first_ms = 60_000;
const rolls_every_ms = 60_000;

export function bookCheck(parts: {
  ledger: Pick<Books, "audit" | "rollUp">;
  /** Called after each check that found differences. */
  found: (differences: LedgerDifference[]) => void;
  failed: (cause: unknown) => void;
  times_ms?: { first: number; every: number; rolls: number };
}) {
  let differing = Number.NaN;
  let behind = Number.NaN;
  const looks = repeating(look, parts.times_ms ?? { first: first_ms, every: every_ms });
  const roll = () => parts.ledger.rollUp().catch(parts.failed);
  const rolls = repeating(roll, { every: parts.times_ms?.rolls ?? rolls_every_ms });

  async function look(): Promise<void> {
    try {
      const audit = await parts.ledger.audit();
      differing = audit.differing;
      behind = audit.sealsBehind;
      if (audit.differences.length > 0) parts.found(audit.differences);
    } catch (cause) {
      parts.failed(cause);
    }
  }

  return {
    /** The number of totals that differed from their records at the last check; NaN before the first. */
    differences: () => differing,
    /**
     * The number of ended usage windows that the last check could not seal (close, with their final sum); NaN before
     * the first check.
     */
    sealsBehind: () => behind,
    stop: async () => void (await Promise.all([looks.stop(), rolls.stop()])),
  };
}
