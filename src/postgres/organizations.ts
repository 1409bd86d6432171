/** Administration of organizations. */
import { eq } from "drizzle-orm";
import { organization } from "../../db/schema.ts";
import type { Administration } from "../store/directory.ts";
import { uuidOf } from "../store/ids.ts";
import { act, audit, bare, storeNow } from "./acts.ts";
import type { Database } from "./database.ts";
import { announceChange } from "./revocations.ts";
import { organizationOf, plainly } from "./rows.ts";

type Verbs = "createOrganization" | "listOrganizations" | "findOrganization" | "setOrganizationStatus";

export function organizations(db: Database): Pick<Administration, Verbs> {
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
        return organizationOf(made);
      }),

    async listOrganizations() {
      const rows = await plainly(db.drizzle.select().from(organization).orderBy(organization.id));
      return rows.map(organizationOf);
    },

    async findOrganization(slugOrId) {
      const id = uuidOf(slugOrId, "org_");
      const wanted = id === null ? eq(organization.slug, slugOrId) : eq(organization.id, id);
      const [row] = await plainly(db.drizzle.select().from(organization).where(wanted));
      return row ? organizationOf(row) : null;
    },

    setOrganizationStatus: (id, status, actor) =>
      act(db, async (tx) => {
        const uuid = uuidOf(id, "org_");
        if (uuid === null) return null;
        const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, uuid)).for("update");
        if (!row) return null;
        if (row.status === status) return organizationOf(row);
        await tx.drizzle.update(organization).set({ status }).where(eq(organization.id, uuid));
        const action = status === "active" ? "organization.resume" : "organization.suspend";
        await audit(tx, await storeNow(tx), { actor, action, owner: uuid, subject: id, details: {} });
        await announceChange(tx, id);
        return organizationOf({ ...row, status });
      }),
  };
}
