/**
 * A serving node, wired: stores, engines, rooms and listeners, from a configuration to an exit code. Beside main.ts this
 * and the files that it calls are the only ones that know all rooms; every value that they need is made here, once, and
 * handed to them. What was begun is ended in the opposite order.
 */

import { type Admission, admission } from "../admission/admission.ts";
import { arrivals } from "../admission/arrivals.ts";
import { limitsInForce } from "../admission/limits-in-force.ts";
import type { Dependencies } from "../api/dependencies.ts";
import { documentation } from "../api/documentation.ts";
import { metricsOperations, probes } from "../api/operations.ts";
import { readinessOf } from "../api/readiness.ts";
import { type Authenticator, authenticator, authenticatorLimits } from "../auth/authenticate.ts";
import { type ExistingSecrets, existingSecrets } from "../auth/existing-secrets.ts";
import { standings } from "../auth/standing.ts";
import { unreadBodies, unreadLimits } from "../body/unread.ts";
import { adminSocket } from "../cli/socket.ts";
import type { Configuration, ServiceLimits } from "../config/configuration.ts";
import { engineNames } from "../config/engine-names.ts";
import { descriptorLimit, lowestFreeDescriptor } from "../config/machine.ts";
import type { Reloadable } from "../config/reload.ts";
import { type Bounds, bounds } from "../http/bounds.ts";
import { runtimeCollector } from "../http/collector.ts";
import { type Lifecycle, lifecycle } from "../http/lifecycle.ts";
import { type Log, logTo } from "../http/log.ts";
import { client } from "../management/client.ts";
import { memoryRates } from "../memory/rates.ts";
import type { Database } from "../postgres/database.ts";
import { directory } from "../postgres/directory.ts";
import { existingSecretsIn } from "../postgres/existing-secrets.ts";
import { limits as limitStore } from "../postgres/limits.ts";
import { noticeQueue } from "../postgres/notices.ts";
import { planUse } from "../postgres/plan-use.ts";
import { plans } from "../postgres/plans.ts";
import { revocations } from "../postgres/revocations.ts";
import { dryRunRates } from "../redis/dry-run-rates.ts";
import { latestCatalog } from "../routing/catalog.ts";
import { type Metrics, prometheusMetrics } from "../telemetry/metrics.ts";
import { openTraces } from "../telemetry/open.ts";
import { watchProcess } from "../telemetry/process.ts";
import { systemClock } from "../time/clock.ts";
import { repeating } from "../time/repeating.ts";
import { tokenCounter } from "../tokens/counter.ts";
import { startThread } from "../tokens/thread.ts";
import { notices } from "../usage/notices.ts";
import type { Member } from "../workers/member.ts";
import { administering } from "./administering.ts";
import { closing } from "./closing.ts";
import { engines } from "./engines.ts";
import { inferenceRuns } from "./inference-runs.ts";
import { type Listeners, listeners } from "./listeners.ts";
import { problemOf, settingsOf, workersChecks, workersReadings } from "./membership.ts";
import { readinessChecks, routesCheck } from "./readiness-checks.ts";
import { publishPlans, reload, tellAtStart } from "./reloading.ts";
import { storePatience } from "./store-patience.ts";
import { stores } from "./stores.ts";
import { startWarmNode } from "./warm-node.ts";
import { warmUp, warmUpInIdleMoments } from "./warm-up.ts";
import { createDemo, type Demo, welcomeText } from "./welcome.ts";

export interface Serving {
  /** Of this build, with its commit. */
  version: string;
  /** Of the contract. */
  contractVersion: string;
  /** Whether this is the executable, and not run from source. */
  isCompiled: boolean;
  configuration: Reloadable;
  database: Database;
  /** Whether only a person sees what is said, and nothing keeps it. */
  isTerminal: boolean;
  /** Prints for people, on stdout. */
  say(text: string): void;
  /** Resolves with the name of the signal that asks to stop; called again for a second one. */
  stopAsked(): Promise<NodeJS.Signals>;
  onReload(reload: () => void): void;
  /** How long ago the configuration file was changed; null: there is none. */
  fileAge_ms(): number | null;
  /** Null: this process is the whole node. */
  member: Member | null;
}

/** How long a node that stops waits for a store that is away, with settlements in hand. */
const settle_ms_max = 10_000;
/** How long a start waits until it is read which keys there are; the rest is read while it serves. */
const existing_ms = 2_000;
/** How often what small requests have left in memory is collected, at most. */
const tidy_ms = 30_000;
/** How often what is new in memory is looked through, while many requests are open. */
const tick_ms = 1_000;

type Outage = (what: string) => (cause: unknown) => void;

export async function serve(serving: Serving): Promise<number> {
  const { configuration, database, member } = serving;
  const { limits, server, storage } = settingsOf(configuration.current(), member);
  const log = logOf(configuration, member);
  {
    await using ending = new AsyncDisposableStack();
    ending.defer(() => database.close());
    const outage: Outage = (what) => (cause) => log.event("warn", what, { cause: String(cause) });
    const node = await nodeOf(serving, log, outage, ending);
    const { dependencies, actAs } = node;
    const isEmbedded = database.kind === "pglite";
    if (isEmbedded) {
      const socket = await adminSocket({
        dataDir: storage.dataDir,
        actAs,
        failed: outage("administration_failed"),
      });
      ending.defer(() => socket.stop());
    }

    const use = () => planUse(database);
    const { prepareNames, publishing } = node;
    await Promise.all([
      tellAtStart(configuration, use, node.inForce.plans(), log),
      node.readinessBegan,
      prepareNames(configuration.current()),
    ]);
    const prepared = listeners(dependencies, node.entrance, {
      ...{ server, limits, log, onReload: serving.onReload },
      isShared: member !== null,
    });
    const stopping = serving.stopAsked();
    const stopped = new AbortController();
    void stopping.then(() => stopped.abort());
    const { startWarmNode: start, dryRunning: ledger } = node;
    const warming = { warm_up_ms: server.warm_up_ms, start, ledger, log, stopped: stopped.signal };
    prepared.checkPorts();
    if (!isEmbedded) await warmUp(warming);
    await node.existingRead;
    if (!stopped.signal.aborted) {
      // Before the ports open, so that a script that waits for /readyz finds the key.
      const demo = isEmbedded ? await demoOf(serving, node) : null;
      const listening = prepared.listen();
      const reloaded = () =>
        reload(configuration, { use, prepareNames }, publishing, member?.agree).then(node.inForce.read);
      serving.onReload(() => void reloaded().catch(outage("limits_unread")));
      const { url } = listening;
      if (isEmbedded) {
        if (demo) serving.say(welcomeText(demo, url));
        const warmed = warmUpInIdleMoments(warming, () => node.lifecycle.openCount === 0);
        ending.defer(() => warmed);
      }
      if (member) member.serving(url, node.told);
      else serving.say(`sluice is serving on ${url}\n`);
      await untilStopped(serving, { listening, life: node.lifecycle, drain: limits, log }, stopping);
    }
  }
  log.event("info", "stopped");
  log.flush();
  return 0;
}

function demoOf(
  { configuration, isTerminal }: Serving,
  node: Awaited<ReturnType<typeof nodeOf>>,
): Promise<Demo | null> {
  return createDemo({
    manage: client(node.actAs("service")),
    catalog: node.dependencies.catalog(),
    dataDir: configuration.current().storage.dataDir,
    now_ms: Date.now(),
    isTerminal,
  });
}

interface Draining {
  listening: Listeners;
  life: Lifecycle;
  drain: Pick<ServiceLimits, "drain_delay_ms" | "drain_ms">;
  log: Log;
}

/** Resolves when what was asked of it has its answers, or has had its time. */
async function untilStopped(
  { stopAsked, member }: Serving,
  { listening, life, drain, log }: Draining,
  stopping: Promise<NodeJS.Signals>,
): Promise<void> {
  const signal = await stopping;
  await listening.keep();
  if (member?.isAlone()) log.event("warn", "supervisor_lost");
  log.event("info", "draining", { signal, open_requests: life.openCount });
  life.startDraining();
  const again = stopAsked();
  await Promise.race([Bun.sleep(signal === "SIGINT" ? 0 : drain.drain_delay_ms), again]);
  await listening.refuse();
  await Promise.race([life.finish(drain.drain_ms), again.then(() => life.finish(0))]);
  await Promise.race([listening.stop(), Bun.sleep(500)]);
  await listening.stopOperator();
}

function logOf(configuration: Reloadable, member: Member | null) {
  return logTo({
    worker: member?.number,
    write: (text) => void process.stderr.write(text),
    clock: systemClock(),
    level: () => configuration.current().log.level,
    format: () => configuration.current().log.format,
    probes: new Set([...probes, ...metricsOperations].map(({ path }) => path)),
    hidden: () => engineNames(configuration.current()),
  });
}

/** All that a node is, but its listeners. */
async function nodeOf(serving: Serving, log: ReturnType<typeof logOf>, outage: Outage, ending: AsyncDisposableStack) {
  const { configuration, database, member } = serving;
  const { limits, metering, server } = settingsOf(configuration.current(), member);
  const metrics = prometheusMetrics({
    version: serving.version,
    isPrivate: server.operator !== null,
    organizations_max: () => configuration.current().metrics.organizations_max,
  });
  ending.defer(watchProcess(metrics, descriptorLimit()));
  database.watch(metrics);
  const traced = await openTraces(configuration.current().telemetry, {
    version: serving.version,
    instanceId: Bun.randomUUIDv7(),
    failed: outage("telemetry_unsent"),
  });
  ending.defer(() => traced?.stop());
  const life = lifecycle();
  const existing = existingSecrets({ store: existingSecretsIn(database), failed: outage("existing_keys_unread") });
  ending.defer(() => existing.stop());
  const patience = storePatience(database.kind, systemClock());
  const authentication = authenticator({
    existing,
    directory: directory(database),
    now_ms: () => performance.now(),
    limits: {
      failures_of_one_address_per_minute: limits.failed_authentications_per_minute,
      lookup_ms: () => patience(authenticatorLimits.lookup_ms()),
    },
    failed: outage("last_use_unwritten"),
  });
  ending.defer(() => authentication.stop());
  const freshBounds = () => {
    const { trustedProxies, clientAddressHeader } = server;
    const held = { ...limits, descriptors_max: descriptorLimit(), trustedProxies, clientAddressHeader };
    const machine = { residentBytes: process.memoryUsage.rss, ...runtimeCollector, lowestFreeDescriptor };
    return bounds(held, machine, life.smallWait);
  };
  const bounded = freshBounds();
  const tidying = repeating(async () => bounded.leftovers.passed(life.openCount), { every: tidy_ms });
  ending.defer(() => tidying.stop());
  const ticking = repeating(async () => bounded.leftovers.ticked(life.openCount), { every: tick_ms });
  ending.defer(() => ticking.stop());
  const kept = await stores({
    ...{ database, configuration: configuration.current, log, outage, watcher: metrics, ending },
    locked: metrics.locked,
    receiptsLost: metrics.receiptsLost,
  });
  const { ledger, refused, responses } = kept;
  const counter = tokenCounter(() => startThread(serving.isCompiled), outage("count_worker_lost"));
  ending.defer(() => counter.stop());
  const publishing = { store: plans(database), fileAge_ms: serving.fileAge_ms, log };
  await publishPlans(configuration.current(), publishing, serving.fileAge_ms());
  const inForce = await limitsInForce({ store: limitStore(database), failed: outage("limits_unread") });
  ending.defer(() => inForce.stop());
  const admitting = admission({
    ledger,
    changes: inForce.changes,
    rates: kept.rates,
    metering,
    grant_ms: () => patience(limits.grant_ms),
    log: outage("ledger_unreachable"),
    settled: metrics.settled,
    waited: metrics.grant,
    sent: metrics.batch,
    recovered(count) {
      metrics.recovered(count);
      log.event("warn", "recovered", { requests: count });
    },
  });
  ending.defer(async () => {
    const requests = await admitting.stop(settle_ms_max);
    if (requests > 0)
      log.event("error", "unsettled", { requests, next: "another node, or the next start, recovers them" });
  });
  const standing = standings({ authenticator: authentication, ends: metering.end_revoked });
  ending.defer(() => standing.stop());
  const changed = (id: string, secretHash?: string) => {
    authentication.forget(id, secretHash);
    standing.changed(id);
  };
  const announced = { changed, missed: existing.reload, took: metrics.revocationPropagation };
  ending.defer(await revocations(database, announced));
  // Not before the announcements are heard, so that none falls between.
  existing.reload();
  const telling = notices({
    queue: noticeQueue(database),
    allowsPrivate: () => configuration.current().webhooks.allowPrivate,
    now_ms: Date.now,
    failed: outage("notices_unsent"),
    givenUp: ({ id, organizationId }, problem) =>
      log.event("error", "notice_given_up", { notice: id, organization: organizationId, problem }),
  });
  ending.defer(() => telling.stop());
  const known = engines({ configuration: configuration.current, log, resolved: metrics.resolved, ending });
  metrics.routes(known.routes);
  metrics.tallies(known.tallies.read);
  metrics.addresses(known.addresses);
  const checks = [...readinessChecks(database, kept.redis, configuration), routesCheck(known.routes)];
  const readiness = readinessOf([...checks, ...workersChecks(member)], {
    lifecycle: life,
    clock: systemClock(),
    turned(failing) {
      const checks = Object.fromEntries(failing.map(({ name, problem }) => [name, problem]));
      if (failing.length > 0) log.event("warn", "not_ready", { checks });
      else log.event("info", "ready");
    },
  });
  ending.defer(() => readiness.stop());

  const catalogOf = latestCatalog();
  const dependencies: Dependencies = {
    catalog: () => catalogOf(configuration.current().catalog.models, inForce.plans()),
    standings: standing,
    authenticate: authentication.authenticate,
    arrivals: arrivals(() => performance.now()),
    runs: inferenceRuns(
      { ...kept, admission: admitting, counter, engines: known },
      {
        metering: () => configuration.current().metering,
        shares: () => configuration.current().shares,
        ...{ metrics, traces: traced, log },
      },
    ),
    ledger,
    rates: kept.rates,
    refused,
    inputEstimate: kept.inputEstimate,
    responses: { store: responses, settings: () => configuration.current().responses },
    tokenCounter: counter,
    messages: () => configuration.current().messages,
    images: () => configuration.current().images,
    limits,
    bounds: bounded,
    unread: unreadBodies(unreadLimits(limits.body_bytes_max)),
    readiness: readiness.results,
    routes: member ? member.routes : async () => known.routes(),
    letsGo: member ? member.letsGo : () => false,
    configurationHash: configuration.hash,
    documentation: documentation(() => configuration.current().catalog, serving.contractVersion),
    lifecycle: life,
    metrics: member ? { ...metrics, render: member.metrics } : metrics,
    traces: traced,
    log,
    closed: closing({ bounds: bounded, lifecycle: life, metrics, log }),
    newId: () => Bun.randomUUIDv7("buffer").toHex(),
  };
  workersReadings(metrics, member);
  metrics.read("configuration_info", () => [[{ hash: configuration.hash() }, 1]]);
  readings(metrics, { life, bounded, authentication, existing, admitting, kept, database });
  const { actAs, entrance } = administering(
    {
      ...{ database, ledger, refused, server, limits, changed },
      // Asked of the store: this node may hear a moment later of a plan that another has made.
      catalog: async () => ({
        plans: new Map((await publishing.store.inForce()).map((plan) => [plan.name, plan])),
        models: [...configuration.current().catalog.models.keys()],
        pricing: configuration.current().reports,
      }),
    },
    serving.contractVersion,
  );
  const told = {
    problem: () => problemOf(readiness.results()),
    openCount: () => life.openCount,
    values: metrics.values,
    routes: known.routes,
  };
  return {
    ...{ dependencies, actAs, entrance, publishing, inForce, lifecycle: life },
    prepareNames: ({ upstreams }: Configuration) => known.names.prepare(upstreams),
    readinessBegan: readiness.began,
    existingRead: existing.isRead(existing_ms),
    told,
    dryRunning: ledger,
    startWarmNode: () =>
      startWarmNode({
        ...{ configuration: configuration.current(), like: dependencies, bounds: freshBounds(), counter },
        rates: kept.redis ? dryRunRates(kept.redis) : memoryRates(() => performance.now()),
      }),
  };
}

interface Read {
  life: Lifecycle;
  bounded: Bounds;
  authentication: Authenticator;
  existing: ExistingSecrets;
  admitting: Admission;
  kept: Pick<Awaited<ReturnType<typeof stores>>, "checks" | "upkeep" | "timeline" | "signs">;
  database: Pick<Database, "inUse">;
}

function readings(
  { read }: Metrics,
  { life, bounded, authentication, existing, admitting, kept, database }: Read,
): void {
  read("http_open_requests", () => life.openCount);
  read("http_open_streams", () => life.streamCount);
  read("http_memory_in_flight_bytes", () => bounded.memory.bytes);
  read("authentication_absent_keys", authentication.absent);
  read("authentication_existing_secrets", existing.count);
  read("usage_holds", admitting.holds);
  read("usage_settlement_waiting", admitting.waitingSettlements);
  read("usage_ledger_mismatch", kept.checks.differences);
  read("usage_seals_behind", kept.checks.sealsBehind);
  read("usage_partitions_ahead", kept.upkeep.monthsAhead);
  // On the embedded database there is none of these: NaN.
  read("database_timeline", kept.timeline);
  read("database_oldest_snapshot_transactions", () => kept.signs()?.oldestSnapshot_transactions ?? Number.NaN);
  read("database_dead_rows", () => kept.signs()?.deadRows ?? Number.NaN);
  read("database_unfrozen_transactions", () => kept.signs()?.unfrozen_transactions ?? Number.NaN);
  read("store_connections", () => {
    const { store, idle, busy } = database.inUse();
    return [
      [{ store, state: "idle" }, idle],
      [{ store, state: "busy" }, busy],
    ];
  });
  read("store_connection_waiters", () => {
    const { store, waiting } = database.inUse();
    return [[{ store }, waiting]];
  });
}
