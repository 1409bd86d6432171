/** Administration of organizations. */
import { and, eq, gt } from "drizzle-orm";
import { organization } from "../../../db/schema.ts";
import type { Administration } from "../../admin/store/administration.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { act, amountWritten, audit, repeated, storeNow, unrepeated } from "./acts.ts";
import { change } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { adjust, setAnchor } from "./ledger.ts";
import { extraUsageChanged } from "./limits.ts";
import { planMayStand, planStands } from "./managed-plans.ts";
import { addSuspensionNotice } from "./notices.ts";
import { anchored, changeableOrganization, readOrganization, setOrganization } from "./organization-change.ts";
import { isFormer, orTaken, SlugTaken } from "./organization-life.ts";
import { organizationOf, plainly } from "./rows.ts";
import { hasUsed } from "./standing.ts";

type Verbs =
  | "createOrganization"
  | "listOrganizations"
  | "pageOrganizations"
  | "findOrganization"
  | `setOrganization${"Status" | "Plan" | "Anchor"}`
  | "setExtraUsage"
  | "adjustUsage";

export function organizations(db: Database, isServed: boolean): Pick<Administration, Verbs> {
  const stands = isServed ? planStands : (tx: Transaction, name: string | null) => planMayStand(db, tx, name);
  return {
    async createOrganization(input) {
      const creating = act(db, async (tx) => {
        const at = await storeNow(tx);
        const before = await repeated(tx, input.repeat, input.actor, input.id);
        if (before) return before;
        if (!(await stands(tx, input.plan))) {
          await unrepeated(tx, input.repeat, input.actor);
          return "no_plan";
        }
        const { slug, name, plan, actor } = input;
        const [made] = await tx.drizzle
          .insert(organization)
          .values({ id: bare(input.id, "org_"), slug, name, plan, anchorAt: at, createdAt: at })
          .onConflictDoNothing({ target: organization.slug })
          .returning();
        // It is read after the insertion, which has waited for an organization that gives the slug up.
        if (!made || (await isFormer(tx, made))) throw new SlugTaken();
        const details = { slug, name, plan };
        await audit(tx, at, { actor, action: "organization.create", owner: made.id, subject: input.id, details });
        return organizationOf({ ...made, nextAnchorAt: null, nextAnchorFrom: null, formerSlugs: [] });
      });
      return orTaken(creating);
    },

    async listOrganizations() {
      const rows = await plainly(db.drizzle.select(anchored).from(organization).orderBy(organization.id));
      return rows.map(organizationOf);
    },

    async pageOrganizations({ organizationId, after, limit, status, plan, over }) {
      const beyond = after === undefined ? undefined : gt(organization.id, uuidOf(after, "org_") ?? uuid_max);
      const wanted = and(
        beyond,
        organizationId === undefined ? undefined : eq(organization.id, bare(organizationId, "org_")),
        status === undefined ? undefined : eq(organization.status, status),
        plan === undefined ? undefined : eq(organization.plan, plan),
        over === undefined ? undefined : hasUsed("organization", organization.id, over),
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
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        if (row.status === status) return null;
        await setOrganization(tx, row, { status });
        if (status === "suspended") await addSuspensionNotice(tx, row.id, row.version + 1);
        return {
          action: status === "active" ? "organization.resume" : "organization.suspend",
          details: { status, before: row.status },
        };
      }),

    setOrganizationPlan: (id, plan, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        if (row.plan === plan) return null;
        if (!(await stands(tx, plan))) return "no_plan";
        await setOrganization(tx, row, { plan });
        return { action: "organization.plan", details: { plan, before: row.plan } };
      }),

    setOrganizationAnchor: (id, anchorAt, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const before = await readOrganization(tx, row.id);
        const countsFrom = await setAnchor(tx, id, anchorAt);
        const details = { anchor_at: anchorAt, counts_from: countsFrom, before: before?.anchorAt };
        return { action: "organization.anchor", details };
      }),

    setExtraUsage: (id, extra, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const capNanos = extra.enabled ? extra.capNanos : row.extraUsageCapNanos;
        if (row.extraUsageEnabled === extra.enabled && row.extraUsageCapNanos === capNanos) return null;
        await setOrganization(tx, row, { extraUsageEnabled: extra.enabled, extraUsageCapNanos: capNanos });
        await extraUsageChanged(tx, id);
        const before = { enabled: row.extraUsageEnabled, cap: amountWritten(row.extraUsageCapNanos) };
        const details = { enabled: extra.enabled, cap: amountWritten(capNanos), before };
        return { action: "organization.extra_usage", details };
      }),

    adjustUsage: ({ organizationId, entries, nanos, reason, actor }) =>
      act(db, async (tx) => {
        const owner = bare(organizationId, "org_");
        const done = [];
        for (const { entryId, kind } of entries) {
          done.push({ entryId, kind, added: await adjust(tx, entryId, organizationId, kind, nanos) });
        }
        for (const { entryId, kind, added } of done) {
          if (added === null) continue;
          const details = { window: kind, amount: amountWritten(nanos), added: amountWritten(added), reason };
          await audit(tx, await storeNow(tx), { actor, action: "usage.adjust", owner, subject: entryId, details });
        }
        return done;
      }),
  };
}
