/**
 * What every act of administration has in common: one transaction with its audit entry, at one instant of the store's
 * clock. An act that changes nothing writes nothing.
 */
import { desc, eq } from "drizzle-orm";
import { auditEntry } from "../../db/schema.ts";
import type { Administration, AuditEntry } from "../store/directory.ts";
import { idOf, uuidOf } from "../store/ids.ts";
import type { Database, Transaction } from "./database.ts";
import { plainly } from "./rows.ts";

export function act<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return plainly(db.transaction(work));
}

/** The instant of an act, the same for all rows that it writes. */
export async function storeNow(tx: Transaction): Promise<Date> {
  const [row] = await tx.query<{ at: Date }>("select store_now() as at");
  return row!.at;
}

export interface Act {
  actor: string;
  action: string;
  /** UUID of the organization concerned. */
  owner: string;
  subject: string;
  details: Record<string, unknown>;
}

export async function audit(tx: Transaction, at: Date, { actor, action, owner, subject, details }: Act): Promise<void> {
  await tx.drizzle.insert(auditEntry).values({ at, actor, action, organizationId: owner, subject, details });
}

/** Newest first. */
export async function listAudit(
  db: Database,
  { organizationId, limit }: Parameters<Administration["listAudit"]>[0],
): Promise<AuditEntry[]> {
  const owner = organizationId === undefined ? undefined : uuidOf(organizationId, "org_");
  if (owner === null) return [];
  const wanted = owner === undefined ? undefined : eq(auditEntry.organizationId, owner);
  const rows = await plainly(
    db.drizzle.select().from(auditEntry).where(wanted).orderBy(desc(auditEntry.id)).limit(limit),
  );
  return rows.map(
    ({ at, actor, action, organizationId: of, subject, details }): AuditEntry => ({
      at,
      actor,
      action,
      organizationId: of === null ? null : idOf(of, "org_"),
      subject,
      details,
    }),
  );
}
