/** The common parts of every change of an organization. */
import { eq, getTableColumns, sql } from "drizzle-orm";
import { organization } from "../../../db/schema.ts";
import type { Actor, Changed, Organization } from "../../core/store/directory.ts";
import { uuidOf } from "../../core/store/ids.ts";
import { act, audit, storeNow } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";
import { announceChange } from "./revocations.ts";
import { type OrganizationRow, organizationOf } from "./rows.ts";

/** The audit entry of a change. */
interface Written {
  action: string;
  details: Record<string, unknown>;
}

/**
 * The anchors of usage_anchor: the latest in force, and the one that is not in force yet, of which there is at most
 * one.
 */
export const anchored = {
  ...getTableColumns(organization),
  formerSlugs: sql<string[]>`array(
    select f.slug from organization_slug f where f.organization_id = organization.id and f.slug <> organization.slug
    order by f.slug)`,
  anchorAt: sql<Date>`coalesce((
    select a.anchor_at from usage_anchor a where a.organization_id = organization.id and a.month_from <= store_now()
    order by a.month_from desc limit 1), organization.anchor_at)`,
  nextAnchorAt: sql<Date | null>`(
    select a.anchor_at from usage_anchor a where a.organization_id = organization.id and a.month_from > store_now())`,
  nextAnchorFrom: sql<Date | null>`(
    select a.month_from from usage_anchor a where a.organization_id = organization.id and a.month_from > store_now())`,
};

export async function readOrganization(of: Pick<Transaction, "drizzle">, uuid: string): Promise<Organization | null> {
  const [row] = await of.drizzle.select(anchored).from(organization).where(eq(organization.id, uuid));
  return row ? organizationOf(row) : null;
}

export async function setOrganization(
  tx: Transaction,
  { id }: OrganizationRow,
  values: Partial<OrganizationRow>,
): Promise<void> {
  await tx.drizzle.update(organization).set(values).where(eq(organization.id, id));
}

/**
 * One change of one organization that is not closed, with its audit entry, announced to the nodes. `work` returns null
 * if it changes nothing. `version`: the version that it must still have.
 */
export function changing<Refusal extends string = never>(
  db: Database,
  { id, actor, version }: { id: string; actor: Actor; version: number | null | undefined },
  work: (tx: Transaction, row: OrganizationRow) => Promise<Written | Refusal | null>,
): Promise<Changed | Refusal> {
  return act(db, async (tx) => {
    const uuid = uuidOf(id, "org_");
    if (uuid === null) return null;
    const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
    if (!row) return null;
    if (typeof version === "number" && row.version !== version) return { stale: (await readOrganization(tx, uuid))! };
    if (row.status === "closed") return "closed";
    const done = await work(tx, row);
    if (typeof done === "string") return done;
    if (done) {
      await setOrganization(tx, row, { version: row.version + 1 });
      await announceChange(tx, id);
      await audit(tx, await storeNow(tx), { actor, ...done, owner: uuid, subject: id });
    }
    return readOrganization(tx, uuid);
  });
}
