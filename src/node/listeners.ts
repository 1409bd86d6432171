/**
 * The listeners of a node: the ports of the API, of operators and of the console, with a certificate that can be
 * renewed.
 */

import type { ManagementEntrance } from "../admin/http/gate.ts";
import type { ConsoleServed } from "../admin/people/console.ts";
import { type Identity, type IdentityFiles, readIdentity } from "../config/certificate.ts";
import type { ServerSettings, ServiceLimits } from "../config/configuration.ts";
import { readFileBounded } from "../config/source.ts";
import { freePort, type Listening, listen } from "../core/http/listen.ts";
import type { Log } from "../core/http/log.ts";
import type { IdentityParts } from "../features/identity/identity.ts";
import { app, consoleApp, type NodeDependencies, operatorApp } from "./app.ts";
import { type Console, type ConsoleSettings, withFreePort } from "./console.ts";
import { renewal } from "./renewal.ts";

interface ListenerParts {
  server: ServerSettings;
  limits: ServiceLimits;
  log: Log;
  onReload(reload: () => void): void;
  /** Whether other workers of this node listen on the same ports. */
  isShared: boolean;
}

/** The pages and entrances that the ports serve in addition to the operations. */
interface Entrances {
  entrance: ManagementEntrance;
  /** The dependencies of sign-ins; null if nobody can sign in. */
  people: IdentityParts | null;
  console: Pick<Console, "parts" | "files" | "subscriptions" | "settings" | "isOnDemand" | "listensAt">;
}

export interface Listeners {
  url: string;
  /** When the certificate that is shown to clients expires; null: there is none. */
  certificateExpiresAt(): Date | null;
  /** Lets the console listen, if there is one and it does not listen yet. */
  openConsole(): void;
  /**
   * Refuses new connections to the API, and resolves when that has begun. Clients that had connected before are served.
   */
  refuse(): Promise<void>;
  /** Resolves when all requests of the API have their answers. */
  stop(): Promise<void>;
  stopOperator(): Promise<void>;
}

/** Prepares the listeners of a node, which listen once `listen` of the result is called. */
export function listeners(
  dependencies: NodeDependencies,
  { entrance, people, console }: Entrances,
  { server, limits, log, onReload, isShared }: ListenerParts,
) {
  const identity = server.tls ? identityIn(server.tls) : null;
  const operatorIdentity = server.operator?.tls === "on" ? identity : null;
  /** The certificate in force, for the console, which may begin to listen much later. */
  let current = identity;

  function begun(): Listeners {
    const consoleOrigins = () => console.parts.origins();
    const { contextFor } = entrance;
    const signedIn = people && { ...people, contextFor };
    const api = app(dependencies, {
      metrics: server.operator === null,
      people: signedIn,
      consoleOrigins,
      isSecure: identity !== null,
    });
    const listening = listen(api, { ...server, ...limits, isShared }, identity);
    const operator = server.operator
      ? listen(operatorApp(dependencies, entrance), { ...server.operator, ...limits, isShared }, operatorIdentity)
      : null;
    console.listensAt({ service: listening.url });
    const opened = consoleListener({ console, entrance }, (served, settings) =>
      listen(consoleApp(dependencies, served), { ...settings, ...limits, isShared }, current),
    );
    if (!console.isOnDemand) opened.open();
    const renewed = {
      renew(next: Identity) {
        current = next;
        listening.renew(next);
        opened.current()?.renew(next);
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
      certificateExpiresAt: () => certificate?.expiresAt() ?? null,
      openConsole: opened.open,
      refuse: listening.refuse,
      stop: listening.stop,
      stopOperator: async () => void (await Promise.all([operator?.stop(), opened.current()?.stop()])),
    };
  }

  return {
    /** Throws if a port is taken, for which `listen` would throw only later. */
    checkPorts() {
      // Shared ports were checked by the supervisor.
      if (!isShared) for (const each of [server, server.operator, server.console]) if (each) freePort(each);
    },
    listen: begun,
  };
}

/** The console's own listener, which may start later than the others. */
function consoleListener(
  { console, entrance }: Pick<Entrances, "console" | "entrance">,
  begin: (served: ConsoleServed, settings: ConsoleSettings) => Listening,
) {
  const { parts, files, subscriptions, settings, isOnDemand, listensAt } = console;
  let listening: Listening | null = null;
  return {
    current: () => listening,
    open() {
      if (listening || !settings) return;
      const served = { parts, management: entrance, files, subscriptions };
      listening = begin(served, isOnDemand ? withFreePort(settings) : settings);
      listensAt({ console: listening.url });
    },
  };
}

/** Reads the certificate and key. Throws if the files cannot be used. */
export function identityIn(files: IdentityFiles): Identity {
  const read = readIdentity(files, readFileBounded);
  if ("problem" in read) throw new Error(read.problem);
  return read.identity;
}
