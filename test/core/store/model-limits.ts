// Sets limits for models as management does.

import type { UsageLimits } from "../../../src/core/store/ledger.ts";
import { sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";

/** `parent` is the UUID of a key, a person's subject, a team or the organization itself. Returns the UUID of what is counted. */
export async function limitModels(
  db: Database,
  organization: string,
  parent: string,
  pattern: string,
  limits: Partial<UsageLimits>,
): Promise<string> {
  const { session = null, week = null, month = null, concurrentRequests = null } = limits;
  const [row] = await db.query<{ id: string; unsummed: boolean }>(
    "select usage_models_subject($1, $2) as id, usage_set_models_subject($1, $2, $3, $4) as unsummed",
    [parent, pattern, organization, [session, week, month, concurrentRequests]],
  );
  if (row!.unsummed) await sumEarlier(db, row!.id);
  return row!.id;
}
