/** Administration of organizations. */
import { and, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { organization } from "../../db/schema.ts";
import type { Administration, Organization, Stale } from "../store/directory.ts";
import { bare, uuid_max, uuidOf } from "../store/ids.ts";
import { act, audit, repeated, storeNow, unrepeated } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";
import { adjust, setAnchor } from "./ledger.ts";
import { planStands } from "./managed-plans.ts";
import { tellOfSuspension } from "./notices.ts";
import { announceChange } from "./revocations.ts";
import { type OrganizationRow, organizationOf, plainly } from "./rows.ts";

interface Changed {
  action: string;
  details: Record<string, unknown>;
}

type Verbs =
  | "createOrganization"
  | "listOrganizations"
  | "pageOrganizations"
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
  const read = async (of: Transaction, uuid: string) => {
    const [row] = await of.drizzle.select(anchored).from(organization).where(eq(organization.id, uuid));
    return row ? organizationOf(row) : null;
  };

  /**
   * One change of one organization, with its audit entry, told to the nodes. `work` answers null where it changes nothing.
   * `version`: the one that it must have still.
   */
  function changing<Refusal extends string = never>(
    id: string,
    actor: string,
    version: number | null | undefined,
    work: (tx: Transaction, row: OrganizationRow) => Promise<Changed | Refusal | null>,
  ): Promise<Organization | Stale | Refusal | null> {
    return act(db, async (tx) => {
      const uuid = uuidOf(id, "org_");
      if (uuid === null) return null;
      const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
      if (!row) return null;
      if (typeof version === "number" && row.version !== version) return { stale: (await read(tx, uuid))! };
      const done = await work(tx, row);
      if (typeof done === "string") return done;
      if (done) {
        await set(tx, row, { version: row.version + 1 });
        await announceChange(tx, id);
        await audit(tx, await storeNow(tx), { actor, ...done, owner: uuid, subject: id });
      }
      return read(tx, uuid);
    });
  }

  const set = (tx: Transaction, { id }: OrganizationRow, values: Partial<OrganizationRow>) =>
    tx.drizzle.update(organization).set(values).where(eq(organization.id, id));

  return {
    createOrganization: (input) =>
      act(db, async (tx) => {
        const at = await storeNow(tx);
        const before = await repeated(tx, input.repeat, input.actor, input.id);
        if (before) return before;
        if (!(await planStands(db, tx, input.plan))) {
          await unrepeated(tx, input.repeat, input.actor);
          return "no_plan";
        }
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
        if (!made) {
          await unrepeated(tx, input.repeat, input.actor);
          return "slug_taken";
        }
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

    async pageOrganizations({ after, limit, status, plan }) {
      const beyond = after === undefined ? undefined : gt(organization.id, uuidOf(after, "org_") ?? uuid_max);
      const wanted = and(
        beyond,
        status === undefined ? undefined : eq(organization.status, status),
        plan === undefined ? undefined : eq(organization.plan, plan),
      );
      const rows = await plainly(
        db.drizzle
          .select(anchored)
          .from(organization)
          .where(wanted)
          .orderBy(organization.id)
          .limit(limit + 1),
      );
      return { items: rows.slice(0, limit).map(organizationOf), hasMore: rows.length > limit };
    },

    async findOrganization(slugOrId) {
      const id = uuidOf(slugOrId, "org_");
      const wanted = id === null ? eq(organization.slug, slugOrId) : eq(organization.id, id);
      const [row] = await plainly(db.drizzle.select(anchored).from(organization).where(wanted));
      return row ? organizationOf(row) : null;
    },

    setOrganizationStatus: (id, status, actor, version) =>
      changing<never>(id, actor, version, async (tx, row) => {
        if (row.status === status) return null;
        await set(tx, row, { status });
        if (status === "suspended") await tellOfSuspension(tx, row.id, row.version + 1);
        return {
          action: status === "active" ? "organization.resume" : "organization.suspend",
          details: { status, before: row.status },
        };
      }),

    setOrganizationPlan: (id, plan, actor, version) =>
      changing<"no_plan">(id, actor, version, async (tx, row) => {
        if (row.plan === plan) return null;
        if (!(await planStands(db, tx, plan))) return "no_plan";
        await set(tx, row, { plan });
        return { action: "organization.plan", details: { plan, before: row.plan } };
      }),

    setOrganizationAnchor: (id, anchorAt, actor, version) =>
      changing<never>(id, actor, version, async (tx, row) => {
        const before = await read(tx, row.id);
        const countsFrom = await setAnchor(tx, id, anchorAt);
        const details = { anchor_at: anchorAt, counts_from: countsFrom, before: before?.anchorAt };
        return { action: "organization.anchor", details };
      }),

    setExtraUsage: (id, extra, actor, version) =>
      changing<never>(id, actor, version, async (tx, row) => {
        const capUnits = extra.enabled ? extra.capUnits : row.extraUsageCapUnits;
        if (row.extraUsageEnabled === extra.enabled && row.extraUsageCapUnits === capUnits) return null;
        await set(tx, row, { extraUsageEnabled: extra.enabled, extraUsageCapUnits: capUnits });
        const before = { enabled: row.extraUsageEnabled, cap_units: row.extraUsageCapUnits };
        const details = { enabled: extra.enabled, cap_units: capUnits, before };
        return { action: "organization.extra_usage", details };
      }),

    adjustUsage: ({ organizationId, entries, units, reason, actor }) =>
      act(db, async (tx) => {
        const owner = bare(organizationId, "org_");
        const done = [];
        for (const { entryId, kind } of entries) {
          done.push({ entryId, kind, added: await adjust(tx, entryId, organizationId, kind, units) });
        }
        for (const { entryId, kind, added } of done) {
          if (added === null) continue;
          const details = { window: kind, units, added, reason };
          await audit(tx, await storeNow(tx), { actor, action: "usage.adjust", owner, subject: entryId, details });
        }
        return done;
      }),
  };
}
