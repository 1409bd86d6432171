/** Administrators of the service over SQL, and the rule that no act removes the last one. */
import type { AdministratorsOutlook } from "../../admin/store/administrators.ts";
import { transact } from "./acts.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { inForce } from "./memberships.ts";

const ofService = inForce.replace("where ", "where m.organization_id is null and ");

/**
 * The condition that there is an administrator who does not expire: a person, or an operator that has no end and whose
 * secret has none. The newest secret of an operator never has an end, except perhaps one that an older version created.
 */
const lasting = `(
  exists (
    select from (${ofService}) m join person p on p.id = m.person_id
    where m.role = 'admin' and p.kind = 'person' and p.suspended_at is null and p.forgotten_at is null)
  or exists (
    select from operator o join operator_secret s on s.operator_id = o.id
    where o.role = 'admin' and o.revoked_at is null and o.expires_at is null
      and s.revoked_at is null and s.expires_at is null))`;

/**
 * Carries out an act on a person or an operator, whose row `lock` locks. Such acts run one after the other, so that
 * each sees the effects of the earlier ones. Returns `last_admin`, and changes nothing, if no administrator would be
 * left.
 */
export async function keepingAdministrator<Row, Answer>(
  db: Database,
  lock: (tx: Transaction) => Promise<Row>,
  work: (tx: Transaction, row: Row) => Promise<Answer>,
): Promise<Answer | "last_admin"> {
  try {
    return await transact(db, async (tx) => {
      await lockAdministrators(tx);
      // From here on the row is locked, so no issuer can give the person a role that the check does not see.
      const row = await lock(tx);
      const hadOne = await isThere(tx);
      const answer = await work(tx, row);
      if (hadOne && !(await isThere(tx))) throw new LastAdministrator();
      return answer;
    });
  } catch (thrown) {
    if (thrown instanceof LastAdministrator) return "last_admin";
    throw thrown;
  }
}

class LastAdministrator extends Error {}

/**
 * Prevents others from removing an administrator until the commit. This lock is taken before any lock of a row, so that
 * no deadlock is possible.
 */
export async function lockAdministrators(tx: Querying): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('sluice last admin', 0))");
}

async function isThere(tx: Querying): Promise<boolean> {
  const [row] = await tx.query<{ is_there: boolean }>(`select ${lasting} as is_there`);
  return row!.is_there;
}

export async function administratorsOutlook(db: Querying): Promise<AdministratorsOutlook> {
  const [row] = await db.query<AdministratorsOutlook>(
    `select ${lasting} as "isLasting", store_now() as "readAt",
       greatest(
         (select max(expires_at) from operator where role = 'admin' and revoked_at is null),
         (select max(ended_at) from membership where role = 'admin' and organization_id is null)) as "endsAt"`,
  );
  return row!;
}
