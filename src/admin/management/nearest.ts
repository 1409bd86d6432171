/** The organizations that have used the largest share of a limit: docs/design/usage.md, Standing. */

import { type Standings, tightestWindow } from "../../features/telemetry/store/standing.ts";
import type { Administration } from "../store/administration.ts";
import type { NearOrganization } from "./fleet-shape.ts";

const organizations_max = 5;

interface Stores {
  administration: Pick<Administration, "findOrganization">;
  standings: Pick<Standings, "nearest">;
}

/** The organizations, the one nearest to its limit first. */
export async function nearestOrganizations({ administration, standings }: Stores): Promise<NearOrganization[]> {
  const found = await standings.nearest("organization", organizations_max);
  const named = await Promise.all(
    found.map(async (standing) => {
      const most = tightestWindow(standing);
      if (!most || most.percent === 0) return [];
      const organization = await administration.findOrganization(standing.id);
      if (!organization) return [];
      const { kind: window, percent: usagePercent } = most;
      const { resetAt } = standing.windows[window];
      const { id: organizationId, slug } = organization;
      const models = standing.models ?? null;
      return [{ organization: slug, organizationId, models, window, usagePercent, resetAt }];
    }),
  );
  return named.flat();
}
