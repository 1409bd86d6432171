/** The common parts of all changes of an organization. */
import { eq, type SQL, sql } from "drizzle-orm";
import { organization } from "../../../db/schema.ts";
import { type Calendar, weekDays } from "../../admin/store/calendar.ts";
import type { Organization } from "../../admin/store/organization.ts";
import { uuidOf } from "../../core/store/ids.ts";
import type { Changeable } from "./change.ts";
import type { Transaction } from "./database.ts";
import { idIn, type OrganizationRow, unwrapErrors } from "./rows.ts";

/** A row of the table `usage_anchor`. */
interface AnchorRow {
  anchor_at: string;
  /** The time zone of the calendar; null: weeks and months are counted from the anchor. */
  zone: string | null;
  week_starts: number | null;
  month_starts: number | null;
  month_from: string;
}

/**
 * SQL for the anchor in force (how weeks and months are counted now), or for the next one, of which there is at most
 * one.
 */
const anchor = (is: "in force" | "next") =>
  sql.raw(`(
    select to_json(a) from usage_anchor a
    where a.organization_id = organization.id and a.month_from ${is === "next" ? ">" : "<="} store_now()
    order by a.month_from desc limit 1)`) as SQL<AnchorRow | null>;

const columns = {
  id: idIn(organization.id, "org_"),
  slug: organization.slug,
  formerSlugs: sql<string[]>`array(
    select f.slug from organization_slug f where f.organization_id = organization.id and f.slug <> organization.slug
    order by f.slug)`,
  name: organization.name,
  status: organization.status,
  plan: organization.plan,
  extraUsage: { enabled: organization.extraUsageEnabled, capNanos: organization.extraUsageCapNanos },
  keyLifetimeMaxDays: organization.keyLifetimeMaxDays,
  keyUnusedMaxDays: organization.keyUnusedMaxDays,
  keepsContent: organization.keepsContent,
  anchorAt: organization.anchorAt,
  now: anchor("in force"),
  next: anchor("next"),
  createdAt: organization.createdAt,
  closedAt: organization.closedAt,
  version: organization.version,
};

/** Complete organizations, the oldest first. */
export async function readOrganizations(
  of: Pick<Transaction, "drizzle">,
  wanted: SQL | undefined,
  limit?: number,
): Promise<Organization[]> {
  const reading = of.drizzle.select(columns).from(organization).where(wanted).orderBy(organization.id);
  const rows = await unwrapErrors(limit === undefined ? reading : reading.limit(limit));
  return rows.map(({ now, next, ...row }) => ({ ...row, ...countedBy(row.anchorAt, now, next) }));
}

export async function readOrganization(of: Pick<Transaction, "drizzle">, uuid: string): Promise<Organization | null> {
  return (await readOrganizations(of, eq(organization.id, uuid)))[0] ?? null;
}

/**
 * How weeks and months are counted now, and how they will be counted next. `first`: the anchor that applies if there is
 * no row.
 */
function countedBy(first: Date, now: AnchorRow | null, next: AnchorRow | null) {
  const [calendar, nextCalendar] = [calendarOf(now), calendarOf(next)];
  const isCalendar = calendar !== null || nextCalendar !== null;
  const countsFrom = next && new Date(next.month_from);
  return {
    anchorAt: now ? new Date(now.anchor_at) : first,
    nextAnchor: countsFrom && !isCalendar ? { anchorAt: new Date(next.anchor_at), countsFrom } : null,
    calendar,
    nextCalendar: countsFrom && isCalendar ? { calendar: nextCalendar, countsFrom } : null,
  };
}

function calendarOf(row: AnchorRow | null): Calendar | null {
  if (!row || row.zone === null) return null;
  return { zone: row.zone, weekStarts: weekDays[row.week_starts! - 1]!, monthStarts: row.month_starts! };
}

export async function setOrganization(
  tx: Transaction,
  { id }: OrganizationRow,
  values: Partial<OrganizationRow>,
): Promise<void> {
  await tx.drizzle.update(organization).set(values).where(eq(organization.id, id));
}

export const changeableOrganization: Changeable<OrganizationRow, Organization, "closed"> = {
  async lock(tx, id) {
    const uuid = uuidOf(id, "org_");
    if (uuid === null) return null;
    const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
    return row?.status === "closed" ? "closed" : (row ?? null);
  },
  read: (tx, { id }) => readOrganization(tx, id),
  bump: (tx, row) => setOrganization(tx, row, { version: row.version + 1 }),
  owner: ({ id }) => id,
};
