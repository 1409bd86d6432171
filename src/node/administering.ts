/**
 * Wires the administration of a serving node: the verbs for each kind of actor, and the management interface of the
 * operator's port.
 */

import type { ManagementEntrance } from "../admin/http/gate.ts";
import { latest, shared } from "../admin/http/shared.ts";
import { operatorCaller } from "../admin/management/caller.ts";
import { direct } from "../admin/management/client.ts";
import { type ConsoleLinking, type ManagementOptions, managementContext } from "../admin/management/context.ts";
import { nearestOrganizations } from "../admin/management/nearest.ts";
import { ownLimitsOf } from "../admin/management/own-limits.ts";
import type { ServerSettings, ServiceLimits } from "../config/configuration.ts";
import type { Authenticator } from "../core/auth/authenticate.ts";
import { unknownCredentialLimits } from "../core/auth/unknown-credentials.ts";
import { compact } from "../core/protocol/json.ts";
import { operatorAuthentication } from "../features/identity/operator.ts";
import { administration, administrationStores } from "../stores/postgres/administration.ts";
import type { Database } from "../stores/postgres/database.ts";
import { randomBytes, sealingOf } from "./sealing.ts";
import { trying } from "./trying.ts";

interface AdministrationDependencies extends Pick<ManagementOptions, "ledger" | "refused"> {
  database: Database;
  catalog: ManagementOptions["catalog"];
  configuration?: ManagementOptions["configuration"];
  server: ServerSettings;
  limits: ServiceLimits;
  /** Informs this node that a key or an organization has changed. */
  changed(keyOrOrganizationId: string): void;
  /** Authenticates the key with which an administrator tries a model. Absent: nobody can try a model. */
  authenticateSecret?: Authenticator["authenticateSecret"];
}

/**
 * How old a reading may be that several clients share: first, of the fleet's reports; second, of the organizations
 * nearest to a limit, for which all organizations must be read.
 */
const reports_ms = 100;
const nearest_ms = 10_000;

export type Administering = ReturnType<typeof administering>;

/** Builds the administration of a serving node. `version`: the version of the contract. */
export function administering(parts: AdministrationDependencies, version: string) {
  const { database, ledger, refused, catalog, server, limits, changed } = parts;
  const reading = administration(database);
  const now_ms = () => performance.now();
  const sealing = sealingOf(server);
  // All clients that follow the fleet share one reading of its reports.
  const fleet = { listProcesses: shared(reading.listProcesses, reports_ms, now_ms) };
  const nearest = latest(
    () => nearestOrganizations({ administration: reading, standings: reading }),
    nearest_ms,
    now_ms,
  );
  const authenticate = operatorAuthentication({
    operators: reading,
    now_ms,
    limits: {
      ...unknownCredentialLimits,
      failures_of_one_address_per_minute: limits.failed_authentications_per_minute,
    },
  });
  const contextFor = (
    who: Pick<ManagementOptions, "actor" | "within" | "person" | "repeatKey" | "console">,
    address: string | null,
  ) => {
    return managementContext({
      ...who,
      ...administrationStores(database, { address, own: ownLimitsOf(who), isServed: true, sealing }),
      fleet,
      nearest,
      ledger,
      refused,
      catalog,
      ...compact({ configuration: parts.configuration }),
      now_ms: Date.now,
      newUuid: () => Bun.randomUUIDv7(),
      random: randomBytes,
      changed: async (id) => changed(id),
    });
  };
  const contextOf: ManagementEntrance["contextFor"] = ({ caller: { actor, within, person }, address, repeatKey }) =>
    contextFor({ actor, within, person, repeatKey }, address);
  const { authenticateSecret } = parts;
  const entrance: ManagementEntrance = {
    authenticate: async ({ request, client }) => operatorCaller(await authenticate(request.headers, client)),
    contextFor: contextOf,
    ...(authenticateSecret && { trying: trying({ database, authenticateSecret, contextFor: contextOf }) }),
    tls: server.operator?.tls ?? "off",
    names: server.operator ? [server.operator.host.toLowerCase(), ...(server.operator.names ?? [])] : [],
    version,
  };
  return {
    entrance,
    /** All verbs for a user of the node's own machine, whose access the file system guards. */
    actAs: (actor: string, console: ConsoleLinking | null = null) => direct(contextFor({ actor, console }, null)),
    /** Returns the operator of a token that was typed into a sign-in page. Throws Fault. */
    typedToken: (token: string, address: string) =>
      authenticate(new Headers({ authorization: `Bearer ${token}` }), address),
  };
}
