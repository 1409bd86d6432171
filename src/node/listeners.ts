/** The listeners of a node: the API's port, with a certificate that may be renewed, and the operator's port. */

import { app, consoleApp, operatorApp } from "../api/app.ts";
import type { Dependencies } from "../api/dependencies.ts";
import type { ManagementEntrance } from "../api/management/gate.ts";
import { type Identity, type IdentityFiles, readIdentity } from "../config/certificate.ts";
import type { ServerSettings, ServiceLimits } from "../config/configuration.ts";
import { readFileBounded } from "../config/source.ts";
import { freePort, listen } from "../http/listen.ts";
import type { Log } from "../http/log.ts";
import type { IdentityParts } from "../identity/identity.ts";
import { renewal } from "./renewal.ts";

interface ListenerParts {
  server: ServerSettings;
  limits: ServiceLimits;
  log: Log;
  onReload(reload: () => void): void;
  /** Whether other workers of this node listen on the same ports. */
  isShared: boolean;
}

/** What the ports serve beside the operations. */
interface Entrances {
  entrance: ManagementEntrance;
  /** Null: nobody signs in. */
  people: IdentityParts | null;
}

/** They are made, and none of them listens yet. */
export interface PreparedListeners {
  /** Throws if a port is taken, before `listen` would. */
  checkPorts(): void;
  listen(): Listeners;
}

export interface Listeners {
  url: string;
  /** The certificate stays as it is. */
  keep(): Promise<void>;
  /** Resolves when connections for the API are refused. Clients that had connected before are served. */
  refuse(): Promise<void>;
  /** Resolves when all requests of the API have their answers. */
  stop(): Promise<void>;
  /** The ports of operators and of the console. */
  stopOperator(): Promise<void>;
}

export function listeners(
  dependencies: Dependencies,
  entrances: Entrances,
  { server, limits, log, onReload, isShared }: ListenerParts,
): PreparedListeners {
  const identity = server.tls ? identityIn(server.tls) : null;
  const operatorIdentity = server.operator?.tls === "on" ? identity : null;
  return {
    checkPorts() {
      // The supervisor has checked shared ports.
      if (!isShared) for (const each of [server, server.operator, server.console]) if (each) freePort(each);
    },
    listen: () =>
      started(dependencies, entrances, {
        server,
        limits,
        log,
        onReload,
        isShared,
        identity,
        operatorIdentity,
      }),
  };
}

interface Identities {
  identity: Identity | null;
  operatorIdentity: Identity | null;
}

function started(
  dependencies: Dependencies,
  { entrance, people }: Entrances,
  { server, limits, log, onReload, isShared, identity, operatorIdentity }: ListenerParts & Identities,
): Listeners {
  const api = app(dependencies, { metrics: server.operator === null, people });
  const listening = listen(api, { ...server, ...limits, isShared }, identity);
  const operator = server.operator
    ? listen(operatorApp(dependencies, entrance), { ...server.operator, ...limits, isShared }, operatorIdentity)
    : null;
  const console =
    server.console && people
      ? listen(consoleApp(dependencies, people), { ...server.console, ...limits, isShared }, identity)
      : null;
  const renewed = {
    renew(next: Identity) {
      listening.renew(next);
      console?.renew(next);
      if (operatorIdentity) operator?.renew(next);
    },
  };
  const certificate =
    server.tls && identity
      ? renewal(server.tls, identity, { readFile: readFileBounded, listening: renewed, log })
      : null;
  onReload(() => certificate?.look());
  return {
    url: listening.url,
    keep: async () => certificate?.stop(),
    refuse: listening.refuse,
    stop: listening.stop,
    stopOperator: async () => void (await Promise.all([operator?.stop(), console?.stop()])),
  };
}

function identityIn(files: IdentityFiles): Identity {
  const read = readIdentity(files, readFileBounded);
  if ("problem" in read) throw new Error(read.problem);
  return read.identity;
}
