/** Renames organizations, sets their policies, closes them, and deletes them when their records are gone. */
import { and, eq, inArray, isNull, ne, sql } from "drizzle-orm";
import { apiKey, organization, organizationSlug } from "../../../db/schema.ts";
import type { Administration } from "../../admin/store/administration.ts";
import type { Policies } from "../../admin/store/organization.ts";
import { uuidOf } from "../../core/store/ids.ts";
import { detailsOf, storeNow } from "./acts.ts";
import { change } from "./change.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { DatabaseError } from "./database-error.ts";
import { purgeKept } from "./kept.ts";
import { changeableOrganization, readOrganizations, setOrganization } from "./organization-change.ts";
import { purge } from "./responses.ts";
import type { OrganizationRow } from "./rows.ts";

export function organizationLife(db: Database) {
  return {
    async formerOwner(slug) {
      const former = db.drizzle
        .select({ id: organizationSlug.organizationId })
        .from(organizationSlug)
        .where(eq(organizationSlug.slug, slug));
      return (await readOrganizations(db, inArray(organization.id, former)))[0] ?? null;
    },

    renameOrganization(id, names, actor, version) {
      const renaming = change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const { slug = row.slug, name = row.name } = names;
        if (slug === row.slug && name === row.name) return null;
        await setOrganization(tx, row, { slug, name });
        if (await isFormer(tx, { id: row.id, slug })) throw new SlugTaken();
        if (slug !== row.slug) {
          const former = { slug: row.slug, organizationId: row.id };
          await tx.drizzle.insert(organizationSlug).values(former).onConflictDoNothing();
        }
        const details = { slug, name, before: { slug: row.slug, name: row.name } };
        return { action: "organization.rename", details };
      });
      return orTaken(renaming);
    },

    setPolicies: (id, policies, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const named = Object.keys(policies) as (keyof Policies)[];
        const changed = named.filter((name) => policies[name] !== row[name]);
        if (changed.length === 0) return null;
        if (policies.keepsContent === false) await keepNothing(tx, row);
        await setOrganization(tx, row, policies);
        const only = (of: Partial<Policies>) => detailsOf(Object.fromEntries(changed.map((name) => [name, of[name]])));
        return { action: "organization.policies", details: { ...only(policies), before: only(row) } };
      }),

    closeOrganization: (id, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const at = await storeNow(tx);
        await keepNothing(tx, row);
        const unrevoked = and(eq(apiKey.organizationId, row.id), isNull(apiKey.revokedAt));
        const revoked = await tx.drizzle
          .update(apiKey)
          .set({ revokedAt: at, version: sql`${apiKey.version} + 1` })
          .where(unrevoked)
          .returning({ id: apiKey.id });
        await tx.query("delete from notice_destination where organization_id = $1", [row.id]);
        await setOrganization(tx, row, { status: "closed", closedAt: at, plan: null, extraUsageEnabled: false });
        const before = { status: row.status, plan: row.plan, extra_usage: row.extraUsageEnabled };
        return { action: "organization.close", details: { keys_revoked: revoked.length, before } };
      }),

    async purgeContent(id) {
      const owner = uuidOf(id, "org_");
      if (owner === null) return;
      await purge(db, owner);
      await purgeKept(db, owner);
    },
  } satisfies Partial<Administration>;
}

/** Thrown in a transaction to roll it back. */
export class SlugTaken extends Error {}

export async function orTaken<Done>(work: Promise<Done>): Promise<Done | "slug_taken"> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SlugTaken || (error instanceof DatabaseError && error.code === "23505")) return "slug_taken";
    throw error;
  }
}

/** Whether another organization had this slug before. */
export async function isFormer(tx: Transaction, { id, slug }: Pick<OrganizationRow, "id" | "slug">): Promise<boolean> {
  const rows = await tx.drizzle
    .select()
    .from(organizationSlug)
    .where(and(eq(organizationSlug.slug, slug), ne(organizationSlug.organizationId, id)));
  return rows.length > 0;
}

/**
 * Stops the storing of responses: an insertion of a response that happens at this moment waits, and is then refused.
 */
async function keepNothing(tx: Transaction, { id }: OrganizationRow): Promise<void> {
  await tx.query("select kept_response_lock($1)", [id]);
}

/** Deletes organizations that were closed so long ago that all their records are gone. */
export async function forgetClosed(db: Querying): Promise<void> {
  await db.query(
    "select organization_forget(id) from organization where closed_at < usage_upkept_at() - interval '15 months'",
  );
}
