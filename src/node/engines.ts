/** Wires the engines of a node: the client, the health of routes, the requests in flight, and the checks of engines. */
import type { Configuration } from "../config/configuration.ts";
import type { Log } from "../core/http/log.ts";
import { pool } from "../core/routing/choose.ts";
import { health } from "../core/routing/health.ts";
import { queues } from "../core/routing/queues.ts";
import { Drained, type DrainSeen, forgetOthers, replicas } from "../core/routing/replicas.ts";
import type { EngineSlots } from "../core/store/engine-slots.ts";
import { repeating } from "../core/time/clock.ts";
import { client } from "../core/upstream/http1/client.ts";
import { ReadPauses } from "../core/upstream/http1/read-pauses.ts";
import { checks } from "../features/probing/checks.ts";
import { loads } from "../features/probing/loads.ts";
import { names } from "../features/probing/names.ts";
import type { Problem } from "../features/probing/resolution.ts";
import { type Resolve, resolve as resolveName } from "../features/probing/resolve.ts";
import { sharing } from "../features/sharing/sharing.ts";
import { loadsOf, routesOf } from "../features/telemetry/routes.ts";
import { enginesSeen, sharedLimits } from "../features/telemetry/seen.ts";
import { tallies } from "../features/telemetry/tallies.ts";
import { disposable } from "./foundation.ts";
import { Lateness } from "./lateness.ts";
import { logResolved } from "./resolution-log.ts";

export type Engines = ReturnType<typeof engines>;

interface EnginesDependencies {
  configuration(): Configuration;
  log: Log;
  /** Called after each resolution of an upstream's host name. */
  resolved?(upstream: string, problem: Problem | null): void;
  /** Called each time that an engine sends data beyond its answer to a request. */
  strayed?(upstream: string): void;
  /** Called some ten times a second with the lateness of a timer of this process. */
  late?(ms: number): void;
  resolve?: Resolve;
  /** The store of limits that the fleet shares; null: this process is the whole fleet. */
  slots?: EngineSlots | null;
}

/**
 * The interval at which new limits that the fleet shares are found, and at which engines that are gone are forgotten.
 */
const shared_ms = 1_000;

export function engines({
  configuration,
  log,
  resolve = resolveName,
  resolved,
  strayed,
  late,
  slots = null,
}: EnginesDependencies) {
  const ending = new AsyncDisposableStack();
  const now_ms = () => performance.now();
  const configured = () => configuration().upstreams;
  const naming = names({
    resolve,
    upstreams: configured,
    now_ms,
    resolved(upstream, resolution) {
      if (resolution.after.addresses.join() !== resolution.before.addresses.join()) change();
      resolved?.(upstream.name, resolution.after.problem);
      logResolved(log, upstream, resolution);
    },
  });
  ending.defer(() => naming.stop());
  const lateness = new Lateness(undefined, late);
  ending.defer(() => lateness.stop());
  const { read_pause_ms_min, read_pause_ms_max } = configuration().server;
  const pauses = new ReadPauses({ shortest_ms: read_pause_ms_min, longest_ms: read_pause_ms_max });
  const shared = slots && sharing({ store: slots, newName: () => Bun.randomUUIDv7() });
  ending.defer(() => shared?.leaveAll());
  const drained = new Drained();
  const replicaSet = replicas(naming.addressesOf, drained);
  const one = {
    client: client({
      pauses,
      // The log has one line for each time that the engine's connections stop being reused: the engine may send data
      // beyond the answer to a request with every answer.
      strayed({ upstream, replica, isFirst }) {
        strayed?.(upstream);
        if (isFirst) log.event("error", "upstream_stray_answer", { upstream, ...(replica ? { replica } : {}) });
      },
    }),
    health: health(),
    pool: pool(),
    queues: queues(now_ms, shared),
    replicas: replicaSet,
    drained,
    tallies: tallies(),
    names: naming,
  };
  ending.defer(() => one.client.close());

  const upstreams = () => replicaSet.of(configured());
  const forget = () => forgetOthers(upstreams(), [one.health, one.pool, one.queues, one.tallies]);
  function change(): void {
    replicaSet.changed();
    forget();
  }

  const checking = checks({
    ...one,
    upstreams,
    now_ms,
    turned: ({ name: upstream, address: replica }, isUp) =>
      log.event(isUp ? "info" : "error", isUp ? "upstream_up" : "upstream_down", {
        upstream,
        ...(replica ? { replica } : {}),
      }),
  });
  ending.defer(() => checking.stop());
  const loading = loads({ ...one, upstreams, now_ms });
  ending.defer(() => loading.stop());
  // Each engine's limit is shared with the fleet from the start, before the first request. The limit of an engine that a
  // reload took away is given back once nothing runs there.
  const round = async () => {
    forget();
    sharedLimits(configuration().catalog, one);
  };
  const joining = repeating(round, { first: 0, every: shared_ms });
  ending.defer(() => joining.stop());
  const made = {
    ...one,
    drain(all: readonly DrainSeen[]) {
      if (drained.set(all)) replicaSet.changed();
    },
    /** The sum of all delays of this process's timers since its start, in milliseconds. */
    late_ms: () => lateness.total_ms(),
    /** How long the sockets of engines are currently paused after a read. */
    readPause_ms: () => pauses.window_ms,
    routes: () => routesOf(configuration().catalog, one, now_ms()),
    /** The current load of the routes, for sums. */
    loads: () => loadsOf(configuration().catalog, one),
    seen: () => enginesSeen(configuration().catalog, one, now_ms()),
    /** This process's share of each limit that the fleet shares. */
    shares: () => sharedLimits(configuration().catalog, one),
    /** The number of addresses of each upstream whose host name is resolved at intervals. */
    addresses: () =>
      configured().flatMap<[upstream: string, addresses: number]>((each) =>
        each.resolve ? [[each.name, naming.addressesOf(each).length]] : [],
      ),
  };
  return disposable(made, ending);
}
