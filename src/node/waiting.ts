/**
 * A node that waits for its database: it listens, so that probes and clients learn why it does not serve, and writes
 * the reason to the log.
 */

import type { Configuration } from "../config/configuration.ts";
import { configurationHash } from "../config/hash.ts";
import { unreadBodies, unreadLimits } from "../core/body/unread.ts";
import { lifecycle } from "../core/http/frame.ts";
import { freePort, listen } from "../core/http/listen.ts";
import type { Log } from "../core/http/log.ts";
import { systemClock } from "../core/time/clock.ts";
import type { Member } from "../features/workers/member.ts";
import { boundsOf } from "./bounding.ts";
import type { WaitingPorts } from "./foundation.ts";
import { identityIn } from "./listeners.ts";
import { settingsOf, withPorts } from "./membership.ts";
import { logOf } from "./node-log.ts";
import { seldom } from "./seldom.ts";
import { waitingApp } from "./waiting-app.ts";

/** How often the log repeats that the node still waits for the same reason. */
const logged_every_ms = 30_000;

export interface Waiting extends WaitingPorts {
  /**
   * Records a failed attempt. `why` completes a sentence that begins with "the database", and may be shown to anybody.
   */
  failed(why: string, error: Error): void;
  ended(isOpen: boolean): void;
}

/** Begins to listen. Throws if a port is taken. */
export function beginWaiting(configuration: Configuration, member: Member | null): Waiting {
  const began_ms = performance.now();
  const log = logOf(() => configuration, member);
  const waited_s = () => Math.round((performance.now() - began_ms) / 1000);
  let problem = "";
  const isDue = seldom(logged_every_ms, systemClock());
  const ports = listening(configuration, member, log, () => problem);
  return {
    ...ports,
    failed(why, { message }) {
      problem = `the database ${why}; this node waits for it`;
      if (isDue(why)) log.event("warn", "database_awaited", { url: ports.url, waited_s: waited_s(), cause: message });
    },
    ended(isOpen) {
      problem = "the database was reached; this node begins to serve";
      if (isOpen) log.event("info", "database_reached", { waited_s: waited_s() });
      else log.event("info", "stopped");
      log.flush();
    },
  };
}

function listening(configuration: Configuration, member: Member | null, log: Log, problem: () => string) {
  const settings = settingsOf(configuration, member);
  const { limits, server: given } = settings;
  // For workers, the supervisor has already checked that the ports are free.
  const server = member
    ? given
    : withPorts(given, { port: freePort(given), operatorPort: given.operator && freePort(given.operator) });
  if (!member && server.console) freePort(server.console);
  const identity = server.tls ? identityIn(server.tls) : null;
  const life = lifecycle();
  const app = waitingApp({
    bounds: boundsOf(settings, life),
    unread: unreadBodies(unreadLimits(limits.body_bytes_max)),
    limits,
    lifecycle: life,
    traces: null,
    // Every connection is closed after its answer, so that clients connect to the node itself as soon as it serves.
    shedsConnection: () => true,
    metrics: { request() {} },
    log,
    newId: () => Bun.randomUUIDv7("buffer").toHex(),
    readiness: () => [{ name: "database", severity: "required", problem: problem() }],
    configurationHash: () => configurationHash(configuration),
  });
  const options = { ...limits, isShared: member !== null };
  const api = listen(app, { ...server, ...options }, identity);
  const { operator } = server;
  const operators = operator && listen(app, { ...operator, ...options }, operator.tls === "on" ? identity : null);
  return {
    server,
    url: api.url,
    handOver: async () => void (await Promise.all([api.refuse(), operators?.refuse()])),
  };
}
