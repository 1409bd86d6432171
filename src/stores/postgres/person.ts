/** Reads a person's row as a complete person, and locks it, over SQL. */
import { eq, getTableColumns, type SQL, sql } from "drizzle-orm";
import { person } from "../../../db/schema.ts";
import { uuidOf } from "../../core/store/ids.ts";
import type { KnownPerson, Person } from "../../features/identity/store/people.ts";
import type { Changeable } from "./change.ts";
import type { Transaction } from "./database.ts";
import { membershipsShown } from "./memberships.ts";
import { idIn } from "./rows.ts";

export type PersonRow = typeof person.$inferSelect;

const { subjectHash: _, ...columns } = getTableColumns(person);

/** Selects complete people: the row's own columns, and what is derived from other tables. */
export const peopleIn = (tx: Pick<Transaction, "drizzle">) =>
  tx.drizzle
    .select({
      ...columns,
      id: idIn(person.id, "per_"),
      state: sql<Person["state"]>`case when ${person.forgottenAt} is not null then 'forgotten'
        when ${person.suspendedAt} is not null then 'suspended' else 'active' end`,
      memberships: membershipsShown,
      readAt: sql<Date>`store_now()`,
    })
    .from(person);

export async function readPerson(
  tx: Pick<Transaction, "drizzle">,
  wanted: SQL | undefined,
): Promise<KnownPerson | null> {
  return (await peopleIn(tx).where(wanted))[0] ?? null;
}

/**
 * The person's row, locked until the commit. It is not locked `for update`: a transaction that creates a key of the person
 * needs a shared lock on it while the organization is locked, and would wait.
 */
export async function lockPerson(tx: Transaction, id: string): Promise<PersonRow | null> {
  const uuid = uuidOf(id, "per_");
  if (uuid === null) return null;
  const [row] = await tx.drizzle.select().from(person).where(eq(person.id, uuid)).for("no key update");
  return row ?? null;
}

/**
 * How a person's row is changed when the person's limits are set. Such a change removes no administrator, so it need
 * not take the administrators' lock.
 */
export const limitedPerson: Changeable<PersonRow, KnownPerson> = {
  lock: lockPerson,
  read: (tx, { id }) => readPerson(tx, eq(person.id, id)),
  bump: (tx, { id }) => tx.query("update person set version = version + 1 where id = $1", [id]),
  owner: () => null,
};
