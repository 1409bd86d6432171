/**
 * The one way to change a stored thing of any kind: in one transaction it is locked, compared with the version that the
 * caller has read, patched, given the next version, announced to the nodes, and recorded in the audit log. The patch
 * gets the thing as it is under the lock, so that of two changes to different members both take effect. A caller that
 * gives no version has read nothing that could be overwritten unnoticed, so nothing is compared.
 */
import type { Stale, VersionedChange } from "../../admin/store/change.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import { sumAll } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { announceChange } from "./revocations.ts";

/** How things of one kind are changed. `Refused`: the reasons for which a change is refused. */
export interface Changeable<Row extends object, Thing, Refused extends string = never> {
  /** Reads the row and locks it until the commit. Null if there is no such row. */
  lock(tx: Transaction, id: string): Promise<Row | Refused | null>;
  read(tx: Transaction, row: Row): Promise<Thing | null>;
  /** Sets the next version. Absent if things of this kind have no versions. */
  bump?(tx: Transaction, row: Row): Promise<unknown>;
  /** The UUID of the organization for the audit entry. */
  owner(row: Row): string | null;
  /** Announces the change to the nodes. If absent, the thing's id is announced. */
  announce?(tx: Transaction, row: Row): Promise<void>;
  /**
   * Runs the transaction, and may refuse the change as well. If absent, the transaction runs as for any act (acts.ts).
   */
  transaction?: Transacting<Row | Refused | null, Refused> | undefined;
}

type Transacting<Locked, Refused> = <Answer>(
  db: Database,
  lock: (tx: Transaction) => Promise<Locked>,
  work: (tx: Transaction, row: Locked) => Promise<Answer>,
) => Promise<Answer | Refused>;

/** A change that was made, as the audit log needs it. */
export interface Made<Thing> {
  action: string;
  details: Record<string, unknown>;
  /** The UUID of the organization concerned, if it is not the thing's owner. */
  owner?: string | null;
  /** The hash of a new secret of the thing (revocations.ts). */
  secretHash?: Uint8Array;
  /** The ledger's subjects for which `sumEarlier` must follow the commit. */
  unsummed?: readonly string[];
  /** The removed thing, in the form that is returned, if this change removes it. It has no next version. */
  gone?: Thing;
}

/**
 * Changes a thing. `patch` makes the change and returns it; or it returns null if nothing changes (nothing is written
 * then), or a text: the reason for a refusal.
 */
export async function change<
  Row extends object,
  Thing,
  Refused extends string,
  Result extends Made<NoInfer<Thing>> | string | null,
>(
  db: Database,
  kind: Changeable<Row, Thing, Refused>,
  { id, actor, version }: VersionedChange,
  patch: (tx: Transaction, row: Row, at: Date) => Promise<Result>,
): Promise<Thing | Stale<Thing> | Refused | Extract<Result, string> | null> {
  const { transaction = plainTransaction } = kind;
  let unsummed: readonly string[] = [];
  const answer = await transaction(
    db,
    (tx: Transaction) => kind.lock(tx, id),
    async (tx, row): Promise<Thing | Stale<Thing> | Refused | Extract<Result, string> | null> => {
      if (row === null || typeof row === "string") return row;
      if (typeof version === "number" && versionOf(row) !== version) return { stale: (await kind.read(tx, row))! };
      const at = await storeNow(tx);
      const made = await patch(tx, row, at);
      if (made === null) return kind.read(tx, row);
      if (typeof made === "string") return made as Extract<Result, string>;
      if (made.gone === undefined) await kind.bump?.(tx, row);
      await (kind.announce?.(tx, row) ?? announceChange(tx, id, made.secretHash));
      unsummed = made.unsummed ?? [];
      const { action, details, owner = kind.owner(row) } = made;
      await appendAuditEntry(tx, at, { actor, action, owner, subject: id, details });
      return made.gone ?? kind.read(tx, row);
    },
  );
  await sumAll(db, unsummed);
  return answer;
}

/** Like `change`, but accepts any version of the thing. */
export async function changeAnyVersion<
  Row extends object,
  Thing extends object,
  Refused extends string,
  Result extends Made<NoInfer<Thing>> | string | null,
>(
  db: Database,
  kind: Changeable<Row, Thing, Refused>,
  { id, actor }: Omit<VersionedChange, "version">,
  patch: (tx: Transaction, row: Row, at: Date) => Promise<Result>,
): Promise<Thing | Refused | Extract<Result, string> | null> {
  return (await change(db, kind, { id, actor }, patch)) as Thing | Refused | Extract<Result, string> | null;
}

const versionOf = (row: object): unknown => ("version" in row ? row.version : null);

function plainTransaction<Locked, Answer>(
  db: Database,
  lock: (tx: Transaction) => Promise<Locked>,
  work: (tx: Transaction, row: Locked) => Promise<Answer>,
): Promise<Answer> {
  return transact(db, async (tx) => work(tx, await lock(tx)));
}
