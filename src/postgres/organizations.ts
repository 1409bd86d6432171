/** Administration of organizations. */
import { eq, getTableColumns, sql } from "drizzle-orm";
import { organization } from "../../db/schema.ts";
import type { Administration, Organization } from "../store/directory.ts";
import { bare, uuidOf } from "../store/ids.ts";
import { act, audit, storeNow } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";
import { adjust, setAnchor } from "./ledger.ts";
import { announceChange } from "./revocations.ts";
import { type OrganizationRow, organizationOf, plainly } from "./rows.ts";

type Verbs =
  | "createOrganization"
  | "listOrganizations"
  | "findOrganization"
  | `setOrganization${"Status" | "Plan" | "Anchor"}`
  | "setExtraUsage"
  | "adjustUsage";

/** The anchors of usage_anchor: the latest that counts, and one that does not count yet, of which there is one at most. */
const anchored = {
  ...getTableColumns(organization),
  anchorAt: sql<Date>`coalesce((
    select a.anchor_at from usage_anchor a where a.organization_id = organization.id and a.month_from <= store_now()
    order by a.month_from desc limit 1), organization.anchor_at)`,
  nextAnchorAt: sql<Date | null>`(
    select a.anchor_at from usage_anchor a where a.organization_id = organization.id and a.month_from > store_now())`,
  nextAnchorFrom: sql<Date | null>`(
    select a.month_from from usage_anchor a where a.organization_id = organization.id and a.month_from > store_now())`,
};

export function organizations(db: Database): Pick<Administration, Verbs> {
  /** One change of one organization, with its audit entry, told to the nodes. `work` answers null where it changes nothing. */
  function changing(
    id: string,
    actor: string,
    work: (
      tx: Transaction,
      row: OrganizationRow,
    ) => Promise<{ action: string; details: Record<string, unknown> } | null>,
  ): Promise<Organization | null> {
    return act(db, async (tx) => {
      const uuid = uuidOf(id, "org_");
      if (uuid === null) return null;
      const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
      if (!row) return null;
      const done = await work(tx, row);
      if (done) {
        await audit(tx, await storeNow(tx), { actor, ...done, owner: uuid, subject: id });
        await announceChange(tx, id);
      }
      const [after] = await tx.drizzle.select(anchored).from(organization).where(eq(organization.id, uuid));
      return after ? organizationOf(after) : null;
    });
  }

  const set = (tx: Transaction, { id }: OrganizationRow, values: Partial<OrganizationRow>) =>
    tx.drizzle.update(organization).set(values).where(eq(organization.id, id));

  return {
    createOrganization: (input) =>
      act(db, async (tx) => {
        const at = await storeNow(tx);
        const [made] = await tx.drizzle
          .insert(organization)
          .values({
            id: bare(input.id, "org_"),
            slug: input.slug,
            name: input.name,
            plan: input.plan,
            anchorAt: at,
            createdAt: at,
          })
          .onConflictDoNothing({ target: organization.slug })
          .returning();
        if (!made) return "slug_taken";
        const details = { slug: made.slug, name: made.name, plan: made.plan };
        await audit(tx, at, {
          actor: input.actor,
          action: "organization.create",
          owner: made.id,
          subject: input.id,
          details,
        });
        return organizationOf({ ...made, nextAnchorAt: null, nextAnchorFrom: null });
      }),

    async listOrganizations() {
      const rows = await plainly(db.drizzle.select(anchored).from(organization).orderBy(organization.id));
      return rows.map(organizationOf);
    },

    async findOrganization(slugOrId) {
      const id = uuidOf(slugOrId, "org_");
      const wanted = id === null ? eq(organization.slug, slugOrId) : eq(organization.id, id);
      const [row] = await plainly(db.drizzle.select(anchored).from(organization).where(wanted));
      return row ? organizationOf(row) : null;
    },

    setOrganizationStatus: (id, status, actor) =>
      changing(id, actor, async (tx, row) => {
        if (row.status === status) return null;
        await set(tx, row, { status });
        return { action: status === "active" ? "organization.resume" : "organization.suspend", details: {} };
      }),

    setOrganizationPlan: (id, plan, actor) =>
      changing(id, actor, async (tx, row) => {
        if (row.plan === plan) return null;
        await set(tx, row, { plan });
        return { action: "organization.plan", details: { plan, before: row.plan } };
      }),

    setOrganizationAnchor: (id, anchorAt, actor) =>
      changing(id, actor, async (tx) => {
        const countsFrom = await setAnchor(tx, id, anchorAt);
        return { action: "organization.anchor", details: { anchor_at: anchorAt, counts_from: countsFrom } };
      }),

    setExtraUsage: (id, extra, actor) =>
      changing(id, actor, async (tx, row) => {
        const capUnits = extra.enabled ? extra.capUnits : row.extraUsageCapUnits;
        if (row.extraUsageEnabled === extra.enabled && row.extraUsageCapUnits === capUnits) return null;
        await set(tx, row, { extraUsageEnabled: extra.enabled, extraUsageCapUnits: capUnits });
        return { action: "organization.extra_usage", details: { enabled: extra.enabled, cap_units: capUnits } };
      }),

    adjustUsage: ({ organizationId, entries, units, reason, actor }) =>
      act(db, async (tx) => {
        const owner = bare(organizationId, "org_");
        const done = [];
        for (const { entryId, kind } of entries) {
          const added = await adjust(tx, entryId, organizationId, kind, units);
          done.push({ entryId, kind, added });
          if (added === null) continue;
          const details = { window: kind, units, added, reason };
          await audit(tx, await storeNow(tx), { actor, action: "usage.adjust", owner, subject: entryId, details });
        }
        return done;
      }),
  };
}
