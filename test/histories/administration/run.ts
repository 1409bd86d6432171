// Runs histories of people and operators for `npm run histories -- --administration`.

import { openDatabase } from "../../stores/postgres/databases.ts";
import { modelHistory } from "./model.ts";
import { ownLimitsHistory } from "./own-limits.ts";
import { type StoredHistory, storedHistory } from "./stored.ts";

export interface AdministrationOptions {
  first: number;
  count: number;
  /** `model`; `stored`: on Postgres; `own-limits`: an organization's administrator, on Postgres. */
  kind: "model" | "stored" | "own-limits";
  /** Called after each history. */
  done?(histories: number): void;
}

export interface AdministrationRun extends StoredHistory {
  histories: number;
}

/** Stops at the first violation. */
export async function runAdministration({
  first,
  count,
  kind,
  done,
}: AdministrationOptions): Promise<AdministrationRun> {
  const owned = kind === "model" ? null : await openDatabase();
  const run: AdministrationRun = { histories: 0, acts: 0, refusals: 0, violation: null };
  try {
    for (let seed = first; seed < first + count && run.violation === null; seed++) {
      const { acts, refusals, violation } = !owned
        ? modelHistory(seed)
        : kind === "stored"
          ? await storedHistory(owned.db, seed)
          : await ownLimitsHistory(owned.db, seed);
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
