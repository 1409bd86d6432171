// Runs histories of people, operators and limits for `npm run histories -- --administration`.

import { openDatabase } from "../../stores/postgres/databases.ts";
import { modelHistory } from "./model.ts";
import { ownLimitsHistory } from "./own-limits/history.ts";
import { type StoredHistory, storedHistory } from "./stored.ts";

/**
 * The kinds of histories:
 * - `model`: actions on people and operators, in memory.
 * - `stored`: the same on Postgres, and whether they come out alike.
 * - `own-limits`: actions of an organization's administrators on limits, on Postgres.
 */
export const kinds = ["model", "stored", "own-limits"] as const;

export interface AdministrationOptions {
  first: number;
  count: number;
  kind: (typeof kinds)[number];
  /** Called after each history. */
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
  const owned = kind === "model" ? null : await openDatabase();
  const historyOf = (seed: number) => {
    if (!owned) return modelHistory(seed);
    return kind === "stored" ? storedHistory(owned.db, seed) : ownLimitsHistory(owned.db, seed);
  };
  const run: AdministrationRun = { histories: 0, acts: 0, refusals: 0, violation: null };
  try {
    for (let seed = first; seed < first + count && run.violation === null; seed++) {
      const { acts, refusals, violation } = await historyOf(seed);
      run.histories += 1;
      run.acts += acts;
      run.refusals += refusals;
      run.violation = violation && `seed ${seed}: ${violation}`;
      done?.(run.histories);
    }
  } finally {
    await owned?.drop();
  }
  return run;
}
