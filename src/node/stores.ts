/**
 * Makes the stores of a node: the ledger, rates, refused requests, stored responses, answers kept to be read again, and
 * calibrations of models.
 */

import { tlsTexts } from "../config/certificate.ts";
import { readFileBounded } from "../config/source.ts";
import type { Log } from "../core/http/log.ts";
import { type Currency, moneyOf } from "../core/inference/money.ts";
import type { FleetReports } from "../core/store/fleet.ts";
import type { Rates } from "../core/store/rates.ts";
import { repeating, systemClock } from "../core/time/clock.ts";
import { forgetting } from "../core/usage/forgetting.ts";
import { inputEstimate } from "../core/usage/input-estimate.ts";
import { outputCalibration } from "../core/usage/output-calibration.ts";
import { refusedLog } from "../core/usage/refused.ts";
import { followCancels } from "../features/responses/background.ts";
import type { KeptMetrics, KeptParts } from "../features/responses/dependencies.ts";
import { roomOf } from "../features/responses/room.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import type { StoreWatcher } from "../features/telemetry/store/watcher.ts";
import { bookCheck } from "../features/upkeep/book-check.ts";
import { bookUpkeep } from "../features/upkeep/book-upkeep.ts";
import { calibrationSaver } from "../features/upkeep/calibration-saver.ts";
import { databaseWatch, nearLimitsWatch } from "../features/upkeep/database-watch.ts";
import { type ReceiptWatch, receiptWatch } from "../features/upkeep/receipt-watch.ts";
import { memoryRates } from "../stores/memory/rates.ts";
import { sharedRates, standbyRates } from "../stores/memory/standby-rates.ts";
import { databaseLogs } from "../stores/postgres/answer-log.ts";
import { calibrations } from "../stores/postgres/calibration.ts";
import type { Database } from "../stores/postgres/database.ts";
import { fleetReports } from "../stores/postgres/fleet-reports.ts";
import { keptAnswers } from "../stores/postgres/kept.ts";
import { type Book, ledger } from "../stores/postgres/ledger.ts";
import { lostReceipts } from "../stores/postgres/lost.ts";
import { refusedRequests } from "../stores/postgres/refused.ts";
import { keptResponses } from "../stores/postgres/responses.ts";
import { signsOf } from "../stores/postgres/signs.ts";
import { standings } from "../stores/postgres/standing.ts";
import { redisLogs } from "../stores/redis/answer-log.ts";
import { type RedisConnection, redisConnection } from "../stores/redis/connection.ts";
import { redisRates } from "../stores/redis/rates.ts";
import { redisReceipts } from "../stores/redis/receipts.ts";
import { disposable, type Foundation } from "./foundation.ts";

export type Stores = Awaited<ReturnType<typeof startStores>>;

type Watched = Pick<Metrics, "locked" | "receiptsLost"> & StoreWatcher & KeptMetrics;

export async function startStores(foundation: Foundation, metrics: Watched) {
  const { serving, log, outage } = foundation;
  await using ending = new AsyncDisposableStack();
  const { database, configuration } = serving;
  const { metering, storage } = configuration.current();
  const redisTls = tlsTexts(storage.redisTls, readFileBounded);
  const redis = storage.redisUrl
    ? redisConnection(storage.redisUrl, outage("redis_unreachable"), redisTls, metrics)
    : null;
  ending.defer(() => redis?.close());
  const fleet = fleetReports(database);
  const rates = ratesOver(fleet, database.kind === "pglite" ? null : redis, log);
  ending.defer(() => rates.close());
  const book = ledger(database, { recovery: metering.recovery, locked: metrics.locked });
  const watch = watchOf({
    database,
    book,
    redis,
    log,
    outage,
    currency: metering.currency,
    receiptsLost: metrics.receiptsLost,
  });
  ending.defer(() => watch?.stop());
  // Only a Postgres server is watched: the embedded database is maintained by this process.
  const signs = database.kind === "postgres" ? databaseWatch(() => signsOf(database)) : null;
  ending.defer(() => signs?.stop());
  const near = nearLimitsWatch(standings(database).nearLimits);
  ending.defer(() => near.stop());
  const refused = refusedLog({
    store: refusedRequests(database),
    now_ms: () => performance.now(),
    failed: outage("refusals_unwritten"),
  });
  ending.defer(() => refused.stop());
  const responses = keptResponses(database, { kept_days: () => configuration.current().responses.kept_days });
  const rounds = forgetting({ forget: responses.forget, failed: outage("responses_unforgotten") });
  ending.defer(() => rounds.stop());
  const kept = startKept(foundation, redis, metrics);
  ending.defer(() => kept.stop());
  const looked = ending.use(startUpkeep(book, log, outage));
  const learned = ending.use(await startLearning(database, outage));
  return disposable(
    {
      redis,
      fleet,
      rates,
      ledger: watch ? { ...book, run: watch.run } : book,
      signs: () => signs?.state() ?? null,
      nearLimits: near.state,
      timeline: () => watch?.timeline() ?? Number.NaN,
      refused,
      responses,
      kept: kept.parts,
      checks: looked.checks,
      upkeep: looked.upkeep,
      inputEstimate: learned.inputEstimate,
      outputCalibration: learned.outputCalibration,
    },
    ending,
  );
}

/**
 * Makes the stores of kept answers, which later requests may read again. Their logs are in Redis if there is one, else
 * in the database.
 */
function startKept({ serving, outage }: Foundation, redis: RedisConnection | null, metrics: KeptMetrics) {
  const { database, configuration } = serving;
  const settings = () => configuration.current().answers;
  const answers = keptAnswers(database, { kept_hours: () => settings().kept_hours });
  const grant_ms = () => configuration.current().limits.grant_ms;
  const kept_ms = () => settings().kept_hours * 3_600_000;
  const logs = redis ? redisLogs(redis, { kept_ms }) : databaseLogs(database);
  const rounds = forgetting({
    async forget() {
      const gone = await answers.forget();
      await logs.remove(gone);
      return gone.length > 0;
    },
    failed: outage("answers_unforgotten"),
  });
  const organization_bytes_max = () => settings().organization_bytes_max;
  const room = roomOf({ answers, logs, organization_bytes_max, failed: outage("answers_unforgotten") });
  const parts: KeptParts = { answers, logs, settings, grant_ms, clock: systemClock(), open: new Set(), room, metrics };
  const cancels = repeating(() => followCancels(parts).catch(outage("cancels_unread")), { every: cancels_ms });
  return { parts, stop: () => Promise.all([rounds.stop(), cancels.stop(), room.stop()]).then(() => {}) };
}

/** How often a node asks which of its background responses were cancelled or deleted on another node. */
const cancels_ms = 1_000;

/** Starts the periodic work on the ledger: comparing its totals with its records, and creating partitions ahead. */
function startUpkeep(book: Book, log: Log, outage: Foundation["outage"]) {
  const ending = new AsyncDisposableStack();
  const checks = bookCheck({
    ledger: book,
    found: (differences) => log.event("error", "usage_mismatch", { differences: differences.slice(0, 20) }),
    failed: outage("usage_unchecked"),
  });
  ending.defer(() => checks.stop());
  const upkeep = bookUpkeep({
    ledger: book,
    putOff: (what) => log.event("info", "usage_upkeep_put_off", { what }),
    failed: outage("usage_upkeep_failed"),
  });
  ending.defer(() => upkeep.stop());
  return disposable({ checks, upkeep }, ending);
}

/** Loads, and saves from then on, what was learned of each model: ratios of tokens to bytes, and sizes of outputs. */
async function startLearning(database: Database, outage: Foundation["outage"]) {
  await using ending = new AsyncDisposableStack();
  const estimate = inputEstimate();
  const calibration = outputCalibration();
  const learning = calibrationSaver({
    store: calibrations(database),
    input: estimate.ratios,
    output: calibration.sums,
    failed: outage("calibration_unreachable"),
  });
  ending.defer(() => learning.stop());
  await learning.recall();
  return disposable({ inputEstimate: estimate, outputCalibration: calibration }, ending);
}

/**
 * Counts requests against the limits per minute of the whole fleet, in Redis. Without Redis, and while it is away, each
 * process counts its share by itself.
 */
function ratesOver({ processes }: Pick<FleetReports, "processes">, redis: RedisConnection | null, log: Log): Rates {
  const own = memoryRates(() => performance.now());
  const share = sharedRates(own, processes);
  if (!redis) return share;
  return standbyRates({
    first: redisRates(redis),
    own,
    share,
    clock: systemClock(),
    turned(cause) {
      if (cause === null) log.event("info", "rates_counted_in_redis");
      else log.event("warn", "rates_counted_in_shares", { processes: processes(), cause: String(cause) });
    },
  });
}

interface WatchParts extends Pick<Foundation, "log" | "outage"> {
  database: Database;
  book: Book;
  redis: RedisConnection | null;
  currency: Currency;
  receiptsLost(count: number): void;
}

/**
 * Watches for a store that has lost confirmed records, for example after a failover. Null for the embedded database,
 * which has no replicas that could take over.
 */
function watchOf({ database, book, redis, log, outage, currency, receiptsLost }: WatchParts): ReceiptWatch | null {
  if (database.kind === "pglite") return null;
  return receiptWatch({
    ledger: book,
    store: lostReceipts(database),
    memory: redis ? redisReceipts(redis) : null,
    moved: ({ from, to }) => log.event("warn", "database_moved", { from, to }),
    lost(some) {
      receiptsLost(some.length);
      const charged = moneyOf(
        some.reduce((sum, { charged }) => sum + charged, 0),
        currency,
      );
      const requests = some.slice(0, 20).map(({ requestId }) => requestId);
      log.event("error", "receipts_lost", { receipts: some.length, charged, requests });
    },
    failed: outage("receipts_unwatched"),
  });
}
