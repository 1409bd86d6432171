/** Reads which plans organizations have, and whether there are any organizations. */
import type { PlanUse } from "../../admin/store/plan.ts";
import type { Querying } from "./database.ts";

const named_max = 20;

/** The plans that organizations have, whether the catalog knows them or not. */
export async function planUse(db: Querying): Promise<PlanUse[]> {
  return db.query<PlanUse>(
    `select plan, count(*)::int as organizations, (array_agg(slug order by slug))[1:${named_max}] as slugs
     from organization where plan is not null group by plan order by plan`,
  );
}

export async function hasOrganizations(db: Querying): Promise<boolean> {
  return (await db.query("select from organization limit 1")).length > 0;
}
