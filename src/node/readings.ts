/** The gauges of a node, which are read for each scrape. */
import type { Bounds } from "../core/http/bounds.ts";
import type { Lifecycle } from "../core/http/frame.ts";
import { isFailing } from "../core/operations/health.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import type { Readiness } from "../features/upkeep/readiness.ts";
import type { Database } from "../stores/postgres/database.ts";
import type { Admitting } from "./admitting.ts";
import type { Authentication } from "./authentication.ts";
import type { Engines } from "./engines.ts";
import type { Stores } from "./stores.ts";

interface Read {
  lifecycle: Lifecycle;
  bounds: Bounds;
  authentication: Authentication;
  admission: Admitting["admission"];
  stores: Pick<Stores, "kept" | "checks" | "upkeep" | "timeline" | "signs" | "nearLimits">;
  engines: Engines;
  database: Pick<Database, "inUse">;
  configurationHash(): string;
  readiness: Pick<Readiness, "results">;
}

export function readings(metrics: Metrics, parts: Read): void {
  const { lifecycle, bounds, authentication, admission, stores, engines, database, configurationHash, readiness } =
    parts;
  const { read } = metrics;
  metrics.routes(engines.routes, engines.loads);
  metrics.tallies(engines.tallies.read);
  metrics.addresses(engines.addresses);
  metrics.shares(engines.shares);
  metrics.drains(() => engines.drained.drains);
  read("node_ready", () => (readiness.results().some(isFailing) ? 0 : 1));
  read("configuration_info", () => [[{ hash: configurationHash() }, 1]]);
  read("http_open_requests", () => lifecycle.openCount);
  read("http_open_streams", () => lifecycle.streamCount);
  read("http_open_websockets", () => bounds.sockets.size);
  read("http_open_websockets_max", () => bounds.sockets.limits.node_max);
  read("http_kept_answers", () => stores.kept.open.size);
  read("http_kept_answers_max", () => stores.kept.settings().open_max);
  read("http_memory_in_flight_bytes", () => bounds.memory.bytes);
  read("authentication_absent_keys", authentication.authentication.absent);
  read("authentication_existing_secrets", authentication.existing.count);
  read("upstream_read_pause_seconds", () => engines.readPause_ms() / 1000);
  read("usage_holds", admission.holds);
  read("usage_settlement_waiting", admission.waitingSettlements);
  read("usage_ledger_mismatch", stores.checks.differences);
  read("usage_seals_behind", stores.checks.sealsBehind);
  read("usage_partitions_ahead", stores.upkeep.monthsAhead);
  read("usage_subjects_near_limit", () =>
    stores.nearLimits().map(({ subject, percent, count }) => [{ subject, percent: String(percent) }, count]),
  );
  // NaN for the embedded database, which has none of these values.
  read("database_timeline", stores.timeline);
  read("database_oldest_snapshot_transactions", () => stores.signs()?.oldestSnapshot_transactions ?? Number.NaN);
  read("database_dead_rows", () => stores.signs()?.deadRows ?? Number.NaN);
  read("database_unfrozen_transactions", () => stores.signs()?.unfrozen_transactions ?? Number.NaN);
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
