// Limits of keys and teams, set directly in the ledger.

import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Budget } from "../../../src/core/store/budget.ts";
import { bare } from "../../../src/core/store/ids.ts";
import { sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { setSubject } from "../../harness/limits.ts";

const uuidOf = (id: string) => id.replace(/^(key|team)_/, "");

/**
 * Sets the limits in force of a key or a team, by its ID or UUID. Returns whether the ledger still has to sum what the
 * key or team used before it had limits.
 */
export function setBudget(
  db: Database,
  organization: string,
  id: string,
  budget: Partial<Budget>,
  team: string | null = null,
): Promise<boolean> {
  const subject = { id: uuidOf(id), organization: bare(organization, "org_"), team: team && uuidOf(team) };
  return db.transaction((tx) => setSubject(tx, { ...subject, budget: { ...noBudget, ...budget } }));
}

/** Sets limits as `setBudget` does, and sums the subject's earlier use if needed; returns whether it summed it. */
export async function limitSubject(
  db: Database,
  organization: string,
  id: string,
  budget: Partial<Budget>,
  team: string | null = null,
): Promise<boolean> {
  const isUnsummed = await setBudget(db, organization, id, budget, team);
  if (isUnsummed) await sumEarlier(db, uuidOf(id));
  return isUnsummed;
}
