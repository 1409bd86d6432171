/**
 * Administration over SQL. Each act, its audit entry and the message to the nodes' caches are one transaction: the
 * message is sent with the commit, never without it.
 */

import type { Administration } from "../../admin/store/administration.ts";
import type { OwnLimits } from "../../admin/store/own-limits.ts";
import type { Sealing } from "../../core/store/sealing.ts";
import { listAudit, readAuditHead, withAddress } from "./acts.ts";
import type { Database } from "./database.ts";
import { drainAdministration } from "./drains.ts";
import { fleet } from "./fleet-reports.ts";
import { invitations } from "./invitations.ts";
import { keys } from "./keys.ts";
import { limitRequests } from "./limit-requests.ts";
import { limitValues } from "./limit-values.ts";
import { managedPlans } from "./managed-plans.ts";
import { noticeDestinations } from "./notice-destinations.ts";
import { operators } from "./operators.ts";
import { organizationLife } from "./organization-life.ts";
import { organizations } from "./organizations.ts";
import { heldToOwnLimits } from "./own-limits.ts";
import { peopleAdministration } from "./people-administration.ts";
import { requestList } from "./request-list.ts";
import { searching } from "./search.ts";
import { standings } from "./standing.ts";
import { teams } from "./teams.ts";
import { upstreamReports } from "./upstream-report.ts";

interface ActContext {
  /** The address from which the acts are requested; null if the node itself performs them. */
  address?: string | null;
  /** The limits of the person who acts, which the acts must not raise. Null if they may raise any limit. */
  own?: OwnLimits | null;
  /**
   * Whether a node performs the acts. A node has published the plans of its file. Otherwise a command performs the
   * acts, and the plans in its file may not be those that the nodes use.
   */
  isServed?: boolean;
  /** Encrypts small secrets. Null if there is no key to encrypt with; they are then stored in plain text. */
  sealing?: Sealing | null;
}

/**
 * The stores that the verbs of the administration need, by the fields from which verbs take them. All these fields hold
 * the same object.
 */
export function administrationStores(database: Database, context?: ActContext) {
  const store = administration(database, context);
  return {
    administration: store,
    operators: store,
    plans: store,
    notices: store,
    drains: store,
    standings: store,
    requests: store,
    upstreamReports: store,
    fleet: store,
    people: store,
    limitRequests: store,
    invitations: store,
  };
}

export function administration(
  database: Database,
  { address = null, own = null, isServed = false, sealing = null }: ActContext = {},
) {
  const held = (other: string | null = null) => withAddress(heldToOwnLimits(database, own, other), address);
  const db = held();
  const directory: Administration = {
    ...organizations(db, isServed),
    ...organizationLife(db),
    ...keys(db),
    ...teams(db),
    ...limitValues(db, held),
    ...searching(db),
    listAudit: (query) => listAudit(db, query),
    auditHead: () => readAuditHead(db),
  };
  return {
    ...directory,
    ...limitRequests(db, held),
    ...invitations(db),
    ...operators(db),
    ...managedPlans(db),
    ...noticeDestinations(db, sealing),
    ...drainAdministration(db),
    ...standings(db),
    ...requestList(db),
    ...upstreamReports(db),
    ...fleet(db),
    ...peopleAdministration(db),
  };
}
