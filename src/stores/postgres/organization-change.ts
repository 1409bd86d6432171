/** The common parts of every change of an organization. */
import { eq, getTableColumns, sql } from "drizzle-orm";
import { organization } from "../../../db/schema.ts";
import type { Organization } from "../../core/store/directory.ts";
import { uuidOf } from "../../core/store/ids.ts";
import type { Changeable } from "./change.ts";
import type { Transaction } from "./database.ts";
import { type CalendarRow, type OrganizationRow, organizationOf } from "./rows.ts";

/**
 * The anchors and calendars of usage_anchor: the latest in force, and the one that is not in force yet, of which there is at
 * most one.
 */
export const anchored = {
  ...getTableColumns(organization),
  formerSlugs: sql<string[]>`array(
    select f.slug from organization_slug f where f.organization_id = organization.id and f.slug <> organization.slug
    order by f.slug)`,
  calendars: sql<CalendarRow[]>`(
    select coalesce(jsonb_agg(to_jsonb(c) order by c.month_from desc), '[]') from (
      select a.zone, a.week_starts, a.month_starts, a.month_from,
        case when a.month_from > store_now() then extract(epoch from a.month_from) * 1000 end as next_ms
      from usage_anchor a where a.organization_id = organization.id order by a.month_from desc limit 2
    ) c)`,
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

/** The organization, locked until the commit. */
export async function lockOpenOrganization(tx: Transaction, id: string): Promise<OrganizationRow | "closed" | null> {
  const uuid = uuidOf(id, "org_");
  if (uuid === null) return null;
  const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
  return row?.status === "closed" ? "closed" : (row ?? null);
}

export const changeableOrganization: Changeable<OrganizationRow, Organization, "closed"> = {
  lock: lockOpenOrganization,
  read: (tx, { id }) => readOrganization(tx, id),
  bump: (tx, row) => setOrganization(tx, row, { version: row.version + 1 }),
  owner: ({ id }) => id,
};
