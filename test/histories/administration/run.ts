// Runs histories of people, operators and limits for `npm run histories -- --administration`.

import { openDatabase } from "../../stores/postgres/databases.ts";
import { ownLimitsHistory } from "./own-limits/history.ts";
import { type StoredHistory, storedHistory } from "./stored.ts";

/**
 * The kinds of histories:
 * - `stored`: actions on people and operators, on Postgres.
 * - `own-limits`: actions of an organization's administrators on limits, on Postgres.
 */
export const kinds = ["stored", "own-limits"] as const;

export interface AdministrationOptions {
  first: number;
  count: number;
  kind: (typeof kinds)[number];
  /** A callback after each history, with the number of histories so far. */
  done?(histories: number): void;
}

export interface AdministrationRun extends StoredHistory {
  histories: number;
}

/** Runs the histories, and stops at the first violation. */
export async function runAdministration({
  first,
  count,
  kind,
  done,
}: AdministrationOptions): Promise<AdministrationRun> {
  const owned = await openDatabase();
  const historyOf = kind === "stored" ? storedHistory : ownLimitsHistory;
  const run: AdministrationRun = { histories: 0, acts: 0, refusals: 0, violation: null };
  try {
    for (let seed = first; seed < first + count && run.violation === null; seed++) {
      const { acts, refusals, violation } = await historyOf(owned.db, seed);
      run.histories += 1;
      run.acts += acts;
      run.refusals += refusals;
      run.violation = violation && `seed ${seed}: ${violation}`;
      done?.(run.histories);
    }
  } finally {
    await owned.drop();
  }
  return run;
}
