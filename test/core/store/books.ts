// Helpers for tests of figures that are computed from the ledger's records: they empty its tables, restore it
// elsewhere, or wait until the audit has read all records.

import type { Book } from "../../../src/stores/postgres/ledger.ts";
import { until } from "../../harness/until.ts";
import type { Store } from "./ledger-stores.ts";

const tables = [
  ...["usage_record", "usage_hold", "usage_now", "usage_past", "usage_seal", "usage_tally", "usage_hour", "usage_day"],
  ...["usage_total", "usage_rolled", "usage_subject", "audit_entry"],
];

/**
 * Empties the ledger's tables and the audit log, so that a test reads no rows of another test. The tables have few
 * rows, and deleting them takes a twentieth of the time of a truncation.
 */
export async function emptyBooks({ db }: Store): Promise<void> {
  await db.exec(`
    ${tables.map((table) => `delete from ${table}`).join(";")};
    update audit_head set number = 0, hash = decode(repeat('00', 32), 'hex');
    update usage_audit set looked_at = null, sealed_until = read_until`);
}

/** Makes transaction numbers look a million higher, as on an old server. Call it before the ledger has any records. */
export async function onOldServer({ db }: Store): Promise<void> {
  const column = (name: string) => `${name} = ${name} + 1000000`;
  await db.exec(`update usage_audit set ${["ahead", "read_until", "sealed_until"].map(column).join()}`);
}

/** Makes transaction numbers a million lower, as on a new server on which a dump of the old server was restored. */
export async function restoredElsewhere({ db }: Store): Promise<void> {
  await db.exec("update usage_audit set ahead = ahead - 1000000");
}

export async function isAllRead({ db }: Store): Promise<boolean> {
  const unread = "select 1 from usage_audit a join usage_record r on r.xact >= a.read_until";
  return (await db.query(unread)).length === 0;
}

/** Waits until the audit has read all records: transactions of other databases on the server can delay it. */
export async function allRead(store: Store, book: Book): Promise<void> {
  const isRead = async () => {
    await book.rollUp();
    return isAllRead(store);
  };
  await until(isRead, 20_000, "all records to be read");
}
