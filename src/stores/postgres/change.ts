/**
 * The one way in which a thing that is kept changes, whatever it is: in one transaction it is locked, compared with the
 * version that the caller has read, patched, given the next version, announced to the nodes, and noted in the audit log.
 * The patch sees the thing as it is under the lock, so that two changes of different members both count. Without a
 * version the caller has read nothing that could be overwritten unseen.
 */
import type { Stale, VersionedChange } from "../../core/store/change.ts";
import { appendAuditEntry, storeNow, transact } from "./acts.ts";
import { sumAll } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { announceChange } from "./revocations.ts";

/** A kind of things that change. `Refused`: the states in which one of them does not. */
export interface Changeable<Row extends object, Thing, Refused extends string = never> {
  /** The row, locked until the commit; null: there is none. */
  lock(tx: Transaction, id: string): Promise<Row | Refused | null>;
  read(tx: Transaction, row: Row): Promise<Thing | null>;
  /** Gives it the next version; absent: things of this kind have none. */
  bump?(tx: Transaction, row: Row): Promise<unknown>;
  /** The UUID of the organization that the audit log names. */
  owner(row: Row): string | null;
  /** Announces the change; absent: under its ID. */
  announce?(tx: Transaction, row: Row): Promise<void>;
  /** The transaction, which may refuse the change, too; absent: that of any act (acts.ts). */
  transaction?: Transacting<Row | Refused | null, Refused> | undefined;
}

type Transacting<Locked, Refused> = <Answer>(
  db: Database,
  lock: (tx: Transaction) => Promise<Locked>,
  work: (tx: Transaction, row: Locked) => Promise<Answer>,
) => Promise<Answer | Refused>;

/** A change that was made, for the audit log. */
export interface Made<Thing> {
  action: string;
  details: Record<string, unknown>;
  /** The UUID of the organization concerned, where it is not the owner of the thing. */
  owner?: string | null;
  /** The secret that the thing got (revocations.ts). */
  secretHash?: Uint8Array;
  /** The subjects of the ledger for which `sumEarlier` must follow the commit. */
  unsummed?: readonly string[];
  /** The thing that is gone with this change: it is answered, and there is no next version. */
  gone?: Thing;
}

/** `patch` returns null if it changes nothing: then nothing is written. A text is its refusal. */
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

/** The same, whatever version the thing has. */
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
