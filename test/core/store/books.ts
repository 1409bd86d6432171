// Empties the ledger's tables, or waits until all records are read: for tests of what is computed from records.

import type { Book } from "../../../src/stores/postgres/ledger.ts";
import { until } from "../../harness/until.ts";
import type { Store } from "./ledger-stores.ts";

const tables = [
  ...["usage_record", "usage_hold", "usage_now", "usage_past", "usage_seal", "usage_tally", "usage_hour", "usage_day"],
  ...["usage_total", "usage_rolled", "usage_subject", "audit_entry"],
];

/**
 * Empties the ledger's tables and the audit log, so that a test reads nothing of another test. The tables have few rows,
 * and to delete these takes a twentieth of the time of a truncation.
 */
export async function emptyBooks({ db }: Store): Promise<void> {
  await db.exec(`
    ${tables.map((table) => `delete from ${table}`).join(";")};
    update audit_head set number = 0, hash = decode(repeat('00', 32), 'hex');
    update usage_audit set looked_at = null, sealed_until = read_until`);
}

/** Lets transactions have numbers as on a server that has had a million more. For a book without records. */
export async function onOldServer({ db }: Store): Promise<void> {
  const column = (name: string) => `${name} = ${name} + 1000000`;
  await db.exec(`update usage_audit set ${["ahead", "read_until", "sealed_until"].map(column).join()}`);
}

/** Lets transactions have numbers as on a new server, on which a dump of that server was restored. */
export async function restoredElsewhere({ db }: Store): Promise<void> {
  await db.exec("update usage_audit set ahead = ahead - 1000000");
}

export async function isAllRead({ db }: Store): Promise<boolean> {
  const unread = "select 1 from usage_audit a join usage_record r on r.xact >= a.read_until";
  return (await db.query(unread)).length === 0;
}

/**
 * Waits until all records are read: transactions of other databases on the server can keep an audit from reading
 * further.
 */
export async function allRead(store: Store, book: Book): Promise<void> {
  const isRead = async () => {
    await book.rollUp();
    return isAllRead(store);
  };
  await until(isRead, 20_000, "all records to be read");
}
