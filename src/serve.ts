/**
 * A serving node, wired: stores, engines, rooms and doors, from a configuration to an exit code. Beside main.ts this is
 * the only file that knows all rooms; every value that they need is made here, once, and handed to them.
 */
import { admission } from "./admission/admission.ts";
import { attempts } from "./admission/attempts.ts";
import { standbyRates } from "./admission/standby-rates.ts";
import { authenticator } from "./auth/authenticate.ts";
import { adminSocket } from "./cli/socket.ts";
import { type Identity, type IdentityFiles, readIdentity, tlsTexts } from "./config/certificate.ts";
import { engineNames } from "./config/engine-names.ts";
import { descriptorLimit, lowestFreeDescriptor, memoryMarkBytes } from "./config/machine.ts";
import type { Reloadable } from "./config/reload.ts";
import { readFileBounded } from "./config/source.ts";
import { app, operatorApp } from "./http/app.ts";
import { bounds } from "./http/bounds.ts";
import type { Dependencies } from "./http/dependencies.ts";
import { documentation } from "./http/documentation.ts";
import { lifecycle } from "./http/lifecycle.ts";
import { listen } from "./http/listen.ts";
import { type Log, logTo } from "./http/log.ts";
import { type Metrics, prometheusMetrics } from "./http/metrics.ts";
import { metricsOperations, probes } from "./http/operations.ts";
import { readinessOf } from "./http/readiness.ts";
import { unreadBodies, unreadLimits } from "./http/unread.ts";
import { management } from "./management/management.ts";
import { memoryRates } from "./memory/rates.ts";
import { administration } from "./postgres/administration.ts";
import { calibrations } from "./postgres/calibration.ts";
import type { Database } from "./postgres/database.ts";
import { directory } from "./postgres/directory.ts";
import { ledger } from "./postgres/ledger.ts";
import { planUse } from "./postgres/plan-use.ts";
import { postgresRates } from "./postgres/rates.ts";
import { refusedRequests } from "./postgres/refused.ts";
import { keptResponses } from "./postgres/responses.ts";
import { revocations } from "./postgres/revocations.ts";
import { readinessChecks, routesCheck } from "./readiness-checks.ts";
import { type RedisConnection, redisConnection } from "./redis/connection.ts";
import { redisRates } from "./redis/rates.ts";
import { reload, tellAtStart } from "./reloading.ts";
import { renewal } from "./renewal.ts";
import { retryBudgets } from "./routing/budget.ts";
import { checks as healthChecks } from "./routing/checks.ts";
import { health } from "./routing/health.ts";
import { pool } from "./routing/pool.ts";
import { routesOf } from "./routing/view.ts";
import type { Rates } from "./store/rates.ts";
import { systemClock } from "./time/clock.ts";
import { tokenCounter } from "./tokens/counter.ts";
import { promptCount } from "./tokens/prompt-count.ts";
import { startThread } from "./tokens/thread.ts";
import { client } from "./upstream/http1/client.ts";
import { bookCheck } from "./usage/book-check.ts";
import { calibrationSaver } from "./usage/calibration-saver.ts";
import { forgetting } from "./usage/forgetting.ts";
import { inputEstimate } from "./usage/input-estimate.ts";
import { outputCalibration } from "./usage/output-calibration.ts";
import { refusedLog } from "./usage/refused.ts";
import { type Ended, runs } from "./usage/run.ts";
import { type Attempted, type WalkParts, walk } from "./usage/walk.ts";
import { welcome } from "./welcome.ts";

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
}

/** How long a node that stops waits for a store that is away, with settlements in hand. */
const settle_ms_max = 10_000;

export async function serve(serving: Serving): Promise<number> {
  const { configuration, database } = serving;
  const { limits, metering, server, storage } = configuration.current();
  const log = logTo({
    write: (text) => void process.stderr.write(text),
    clock: systemClock(),
    level: () => configuration.current().log.level,
    probes: new Set([...probes, ...metricsOperations].map(({ path }) => path)),
    hidden: () => engineNames(configuration.current()),
  });
  const outage = (what: string) => (cause: unknown) => log.event("warn", what, { cause: String(cause) });
  const metrics = prometheusMetrics({ version: serving.version, namesUpstreams: server.operator !== null });
  const life = lifecycle();

  const authentication = authenticator({
    directory: directory(database),
    now_ms: () => performance.now(),
    limits: { failures_of_one_address_per_minute: limits.failed_authentications_per_minute },
    failed: outage("last_use_unwritten"),
  });
  const bounded = bounds(
    {
      ...limits,
      memory_bytes: limits.memory_bytes || memoryMarkBytes(),
      descriptors_max: descriptorLimit(),
      trustedProxies: server.trustedProxies,
    },
    { residentBytes: process.memoryUsage.rss, collect: () => Bun.gc(false), lowestFreeDescriptor },
  );
  const redisTls = tlsTexts(storage.redisTls, readFileBounded);
  const redis = storage.redisUrl ? redisConnection(storage.redisUrl, outage("redis_unreachable"), redisTls) : null;
  const rates = ratesOver(database, redis, log);
  const book = ledger(database, { recovery: metering.recovery });
  const refused = refusedLog({
    store: refusedRequests(database),
    now_ms: () => performance.now(),
    failed: outage("refusals_unwritten"),
  });
  const responses = keptResponses(database, { kept_days: () => configuration.current().responses.kept_days });
  const rounds = forgetting({ forget: responses.forget, failed: outage("responses_unforgotten") });
  const checks = bookCheck({
    ledger: book,
    found: (differences) => log.event("error", "usage_mismatch", { differences: differences.slice(0, 20) }),
    failed: outage("usage_unchecked"),
  });
  const estimate = inputEstimate();
  const calibration = outputCalibration();
  const learning = calibrationSaver({
    store: calibrations(database),
    input: estimate.ratios,
    output: calibration.sums,
    failed: outage("calibration_unreachable"),
  });
  await learning.recall();
  const counter = tokenCounter(() => startThread(serving.isCompiled), outage("count_worker_lost"));
  const admitting = admission({
    ledger: book,
    rates,
    metering,
    grant_ms: limits.grant_ms,
    log: outage("ledger_unreachable"),
    settled: metrics.settled,
    recovered(count) {
      metrics.recovered(count);
      log.event("warn", "recovered", { requests: count });
    },
  });

  const unlisten = await revocations(database, {
    changed: authentication.forget,
    took: metrics.revocationPropagation,
  });

  const engines = client();
  const known = health();
  const inFlight = pool();
  const routes = () => routesOf(configuration.current().catalog, known, inFlight, performance.now());
  const probing = healthChecks({
    client: engines,
    health: known,
    upstreams: () => configuration.current().upstreams,
    now_ms: () => performance.now(),
    turned: ({ name: upstream }, isUp) =>
      log.event(isUp ? "info" : "error", isUp ? "upstream_up" : "upstream_down", { upstream }),
  });
  const walking: WalkParts = {
    client: engines,
    budget: retryBudgets(),
    health: known,
    pool: inFlight,
    now_ms: () => performance.now(),
    draw: Math.random,
    attempted: (attempt) => attempted(attempt, { metrics, log }),
    settings: () => configuration.current().metering,
  };
  const readiness = readinessOf([...readinessChecks(database, redis, configuration), routesCheck(routes)], {
    lifecycle: life,
    clock: systemClock(),
    turned(failing) {
      const checks = Object.fromEntries(failing.map(({ name, problem }) => [name, problem]));
      if (failing.length > 0) log.event("warn", "not_ready", { checks });
      else log.event("info", "ready");
    },
  });

  const dependencies: Dependencies = {
    catalog: () => configuration.current().catalog,
    authenticate: authentication.authenticate,
    attempts: attempts(() => performance.now()),
    runs: runs({
      admission: admitting,
      inputEstimate: estimate,
      countPrompt: promptCount(counter),
      outputCalibration: calibration,
      watcher: {
        granted: (source) => metrics.decision("granted", source),
        ended(ended) {
          metrics.inference(ended);
          if (ended.reportRejected) log.event("warn", "report_rejected", reportShown(ended));
        },
      },
      open: (errand) => walk(walking, errand),
    }),
    ledger: book,
    refused,
    inputEstimate: estimate,
    responses: { store: responses, settings: () => configuration.current().responses },
    tokenCounter: counter,
    messages: () => configuration.current().messages,
    images: () => configuration.current().images,
    limits,
    bounds: bounded,
    unread: unreadBodies(unreadLimits(limits.body_bytes_max)),
    readiness: readiness.results,
    configurationHash: configuration.hash,
    documentation: documentation(() => configuration.current().catalog, serving.contractVersion),
    lifecycle: life,
    metrics,
    log,
    closed(call, status) {
      life.leave(call);
      metrics.request(call.route, status, call.elapsed_ms() / 1000);
      log.request(call, status);
    },
    newId: () => Bun.randomUUIDv7().replaceAll("-", ""),
  };
  metrics.info("configuration_info", "The configuration in force, by its hash.", () => ({
    hash: configuration.hash(),
  }));
  metrics.routes(routes);
  metrics.gauge("http_open_requests", "Open requests.", () => life.openCount);
  metrics.gauge(
    "http_memory_in_flight_bytes",
    "Bytes that open requests hold of the node's budget.",
    () => bounded.memory.bytes,
  );
  metrics.gauge("authentication_absent_keys", "API keys that are remembered not to exist.", authentication.absent);
  metrics.gauge("usage_holds", "Requests of this node with a hold on usage.", admitting.holds);
  metrics.gauge(
    "usage_settlement_waiting",
    "Ended requests whose settlement the database has not confirmed yet.",
    admitting.waitingSettlements,
  );
  metrics.gauge(
    "usage_ledger_mismatch",
    "Totals of recent windows that differ from the sum of their records, at the last hourly check.",
    checks.differences,
  );

  const manageAs = (actor: string) =>
    management({
      administration: administration(database),
      ledger: book,
      refused,
      catalog: () => {
        const { catalog } = configuration.current();
        return { plans: catalog.plans, models: [...catalog.models.keys()] };
      },
      actor,
      now_ms: Date.now,
      newUuid: () => Bun.randomUUIDv7(),
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      changed: async (id) => authentication.forget(id),
    });
  const isEmbedded = database.kind === "pglite";
  const socket = isEmbedded
    ? await adminSocket({ dataDir: storage.dataDir, manageAs, failed: outage("administration_failed") })
    : null;

  const use = () => planUse(database);
  await Promise.all([tellAtStart(configuration, use, log), readiness.began]);
  const identity = server.tls ? identityIn(server.tls) : null;
  const listening = listen(
    app(dependencies, { metrics: server.operator === null }),
    { ...server, ...limits },
    identity,
  );
  const operator = server.operator ? listen(operatorApp(dependencies), { ...server.operator, ...limits }) : null;
  const certificate =
    server.tls && identity ? renewal(server.tls, identity, { readFile: readFileBounded, listening, log }) : null;
  serving.onReload(() => certificate?.look());
  serving.onReload(() => void reload(configuration, use, log));
  if (isEmbedded) {
    const { say, isTerminal } = serving;
    const { url } = listening;
    const { dataDir } = storage;
    const catalog = dependencies.catalog();
    await welcome({ manage: manageAs("service"), url, catalog, dataDir, now_ms: Date.now(), isTerminal, say });
  }
  serving.say(`sluice is serving on ${listening.url}\n`);

  const signal = await serving.stopAsked();
  await certificate?.stop();
  log.event("info", "draining", { signal, open_requests: life.openCount });
  life.startDraining();
  const again = serving.stopAsked();
  await Promise.race([Bun.sleep(signal === "SIGINT" ? 0 : limits.drain_delay_ms), again]);
  const accepted = listening.stop();
  await Promise.race([life.finish(limits.drain_ms), again.then(() => life.finish(0))]);
  await Promise.race([accepted, Bun.sleep(500)]);
  await operator?.stop();
  await socket?.stop();
  readiness.stop();
  await Promise.all([
    authentication.stop(),
    refused.stop(),
    rounds.stop(),
    learning.stop(),
    checks.stop(),
    probing.stop(),
  ]);
  counter.stop();
  engines.close();
  const unsettled = await admitting.stop(settle_ms_max);
  if (unsettled > 0)
    log.event("error", "unsettled", { requests: unsettled, next: "another node, or the next start, recovers them" });
  await rates.close();
  await unlisten();
  redis?.close();
  await database.close();
  log.event("info", "stopped");
  log.flush();
  return 0;
}

function identityIn(files: IdentityFiles): Identity {
  const read = readIdentity(files, readFileBounded);
  if ("problem" in read) throw new Error(read.problem);
  return read.identity;
}

/** What an operator has to mend is said loudly, each time: it costs every request an attempt. */
function attempted({ model, route, end }: Attempted, { metrics, log }: { metrics: Metrics; log: Log }): void {
  const upstream = route.upstream.name;
  metrics.attempt(upstream, end.kind);
  if (end.kind === "refused") log.event("error", "upstream_refused", { upstream, model, status: end.status });
}

/** What an engine said, for the log, which names no engine: `request show` does. */
function reportShown({ requestId, model, reportRejected }: Ended) {
  return { request_id: requestId, model, ...reportRejected };
}

/** One node counts by itself; several by Redis, and by their database where there is none, or while it is away. */
function ratesOver(database: Database, redis: RedisConnection | null, log: Log): Rates {
  if (database.kind === "pglite") return memoryRates(() => performance.now());
  const standby = postgresRates(database);
  if (!redis) return standby;
  return standbyRates({
    first: redisRates(redis),
    standby,
    clock: systemClock(),
    turned(cause) {
      if (cause === null) log.event("info", "rates_counted_in_redis");
      else log.event("warn", "rates_counted_in_database", { cause: String(cause) });
    },
  });
}
