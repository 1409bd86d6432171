/**
 * Records events of all modules as metrics of the table (table.ts). Labels are bounded, and are never a key or content.
 */

import type { Observer } from "../../core/http/observer.ts";
import { nanos_per_one } from "../../core/inference/money.ts";
import type { Loss } from "../../core/protocol/codec.ts";
import type { DrainSeen } from "../../core/routing/replicas.ts";
import type { RouteView } from "../../core/routing/view.ts";
import type { SettleAnswer } from "../../core/store/ledger.ts";
import type { AttemptKind } from "../../core/upstream/attempt.ts";
import type { Ended, Waited } from "../../core/usage/record.ts";
import { divergence } from "./divergence.ts";
import { largest } from "./largest.ts";
import { other } from "./metric.ts";
import { type Instruments, instruments, type MetricReading } from "./registry.ts";
import type { RouteLoad } from "./routes.ts";
import type { SharedLimit } from "./seen.ts";
import type { StoreName, StoreWatcher } from "./store/watcher.ts";
import type { LabelsOf, NameOf } from "./table.ts";
import type { Tally } from "./tallies.ts";
import { unchargedAttempts } from "./uncharged.ts";

export type Metrics = ReturnType<typeof prometheusMetrics>;

interface MetricsSettings {
  version: string;
  /**
   * Whether only the operator can read the metrics: clients must not see the names of engines or other organizations.
   */
  isPrivate: boolean;
  /** The number of organizations that may be reported by name. */
  organizations_max(): number;
}

export function prometheusMetrics({ version, isPrivate, organizations_max }: MetricsSettings) {
  const { inc, observe, read, sum, buckets, render, values } = instruments();
  const organizations = largest(
    () => (isPrivate ? organizations_max() : 0),
    () => performance.now(),
    other,
  );
  const diverged = divergence();
  const named = (upstream: string | null) => (isPrivate ? (upstream ?? "") : "");
  const ofReplicas = <Of extends { replica?: string }>(all: readonly Of[]) =>
    isPrivate ? all.flatMap((one) => (one.replica ? [{ ...one, replica: one.replica }] : [])) : [];
  read("build_info", () => [[{ version }, 1]]);
  read("usage_organization_cost", () =>
    organizations.read().map(({ organization, nanos }) => [{ organization }, nanos / nanos_per_one]),
  );
  read("usage_organization_requests", () =>
    organizations.read().map(({ organization, requests }) => [{ organization }, requests]),
  );
  read("usage_report_divergence", () =>
    diverged
      .read()
      .map(({ model, quantile, ratio }) => [{ model, statistic: quantile === "0.5" ? "p50" : "p99" }, ratio]),
  );
  const observer: Observer = {
    request({ route, status, code = "", seconds, traceId }) {
      inc("http_requests_total", { route, status: String(status), code });
      observe("http_request_duration_seconds", { route }, seconds, traceId);
    },
    unauthenticated: (code) => inc("authentication_failures_total", { code }),
    shed: (full) => inc("http_shed_total", { full }),
    decision: (decision, reason) => inc("admission_decisions_total", { decision, reason }),
    render,
  };
  return {
    ...observer,
    ...storeMetrics(inc, observe),
    /** Records a run that has ended. `traceId`: the id of its request's trace, if the request is traced. */
    inference(ended: Ended, traceId?: string): void {
      recordRun({ inc, observe }, ended, traceId);
      const { model, upstream, divergence, reportRejected } = ended;
      if (upstream !== null)
        for (const [of, field] of tokenClasses)
          inc("upstream_tokens_total", { model, upstream: named(upstream), class: of }, ended.usage[field]);
      for (const { upstream, outcome, inputTokens } of unchargedAttempts(ended))
        inc("upstream_uncharged_tokens_total", { upstream: named(upstream), outcome }, inputTokens);
      organizations.add(ended.organizationId, ended.nanos);
      if (divergence !== null) diverged.observe(model, divergence);
      for (const half of ["input", "output"] as const) {
        const kind = reportRejected?.[half];
        if (kind) inc("usage_reports_rejected_total", { upstream: named(upstream), half, kind });
      }
    },
    /** Counts a change of a request for an engine. */
    partLost: (upstream: string, loss: Loss) => inc("upstream_losses_total", { upstream: named(upstream), loss }),
    attempt: (upstream: string, outcome: AttemptKind) =>
      inc("upstream_attempts_total", { upstream: named(upstream), outcome }),
    /** Counts an unknown reason that an engine gave for the end of an answer. */
    unknownReason: (upstream: string) => inc("upstream_unknown_reasons_total", { upstream: named(upstream) }),
    /** Counts data that an engine sent beyond its answer to a request. */
    strayed: (upstream: string) => inc("upstream_stray_answer_total", { upstream: named(upstream) }),
    firstPart: (upstream: string, seconds: number) =>
      observe("upstream_time_to_first_part_seconds", { upstream: named(upstream) }, seconds),
    waited: ({ model, outcome, ms }: Waited) => observe("upstream_queue_wait_seconds", { model, outcome }, ms / 1000),
    /** Records that the log of an answer is complete, with its size. */
    kept: (bytes: number) => inc("http_kept_bytes_total", {}, bytes),
    unkept: (why: "size" | "store") => inc("http_answers_unkept_total", { why }),
    replayed: () => inc("http_replays_total", {}),
    /** Records the ledger's answer to a request for admission, or that it failed to answer. */
    grant: (answer: "granted" | "refused" | "error", wait_ms: number) =>
      observe("admission_grant_wait_seconds", { answer }, wait_ms / 1000),
    /** Records a batch of this many commands that was sent to the ledger. */
    batch(commands: number, ms: number, isAnswered: boolean): void {
      observe("admission_batch_commands", {}, commands);
      observe("admission_batch_duration_seconds", {}, ms / 1000);
      if (!isAnswered) inc("admission_batch_failures_total", {});
    },
    /** Records how long a batch waited for the locks of its organizations. */
    locked: (ms: number) => observe("admission_batch_lock_wait_seconds", {}, ms / 1000),
    /**
     * Counts the amounts that a settlement of this node charged, and those that it could not charge:
     * docs/design/usage.md, Settlement.
     */
    settled(answer: SettleAnswer): void {
      if (answer.answer === "already") return;
      if (answer.answer === "late") inc("usage_settled_late_total", {});
      inc("usage_cost_total", { class: "charged" }, answer.charged / nanos_per_one);
      inc("usage_cost_total", { class: "uncharged" }, answer.uncharged / nanos_per_one);
    },
    /** Counts the settled holds of nodes that are gone. */
    recovered: (requests: number) => inc("usage_recovered_total", {}, requests),
    /** Counts confirmed settlements that the database no longer had. */
    receiptsLost: (count: number) => inc("usage_receipts_lost_total", {}, count),
    /** Sets the functions that read the state and the load of the routes for each scrape. */
    routes(views: () => RouteView[], loads: () => RouteLoad[]): void {
      const each = <Name extends NameOf<"gauge">>(name: Name, of: (load: RouteLoad) => [LabelsOf<Name>, number]) =>
        read(name, (() =>
          loads().map((load) => of({ ...load, upstream: named(load.upstream) }))) as () => MetricReading<Name>);
      read("upstream_routes", () =>
        views().map(({ model, upstream, state }) => [{ model, upstream: named(upstream), state }, 1] as const),
      );
      each("upstream_requests_in_flight", ({ model, upstream, requests }) => [{ model, upstream }, requests]);
      each("upstream_queue_length", ({ model, upstream, waiting }) => [{ model, upstream }, waiting]);
      each("upstream_tokens_in_flight", ({ model, upstream, tokens }) => [{ model, upstream }, tokens]);
      read("upstream_replica_routes", () =>
        ofReplicas(views()).map(({ upstream, replica, state }) => [{ upstream, replica, state }, 1] as const),
      );
      read("upstream_replica_requests_in_flight", () =>
        ofReplicas(loads()).map(({ upstream, replica, requests }) => [{ upstream, replica }, requests] as const),
      );
    },
    /** Sets the function that reads, for each scrape, how attempts ended at the engines behind one host name. */
    tallies(tallies: () => readonly Tally[]): void {
      read("upstream_replica_attempts_total", () =>
        (isPrivate ? tallies() : []).map(({ attempts, ...labels }) => [labels, attempts] as const),
      );
    },
    /** Sets the function that reads, for each scrape, this process's slots in limits that the fleet shares. */
    shares(shares: () => readonly SharedLimit[]): void {
      const sums = () => {
        const all = new Map<string, { held: number; isApart: boolean }>();
        for (const { upstream, held, isApart } of shares()) {
          const known = all.get(named(upstream)) ?? { held: 0, isApart: false };
          all.set(named(upstream), { held: known.held + held, isApart: known.isApart || isApart });
        }
        return [...all];
      };
      read("upstream_slots", () => sums().map(([upstream, { held }]) => [{ upstream }, held] as const));
      read("upstream_slots_apart", () =>
        sums().map(([upstream, { isApart }]) => [{ upstream }, isApart ? 1 : 0] as const),
      );
    },
    /** Sets the function that reads, for each scrape, the number of addresses of each upstream with a host name. */
    addresses(addresses: () => readonly (readonly [upstream: string, addresses: number])[]): void {
      read("upstream_addresses", () =>
        addresses().map(([upstream, count]) => [{ upstream: named(upstream) }, count] as const),
      );
    },
    drains(drains: () => readonly DrainSeen[]): void {
      read("upstream_drained_since_seconds", () => drainedSince(drains(), isPrivate));
    },
    /** Records that a host name was resolved. `problem`: null if there was none. */
    resolved: (upstream: string, problem: string | null) =>
      inc("upstream_resolutions_total", { upstream: named(upstream), outcome: problem ?? "answered" }),
    read,
    revocationPropagation: (seconds: number) => observe("key_revocation_propagation_seconds", {}, seconds),
    sum,
    buckets,
    values,
  };
}

/**
 * The drains to report. On the port of clients, which must not see the engines' names, this is only the drain that has
 * lasted longest, without any names.
 */
function drainedSince(
  drains: readonly DrainSeen[],
  isPrivate: boolean,
): [LabelsOf<"upstream_drained_since_seconds">, number][] {
  const open = drains
    .filter(({ until }) => until === null)
    .map(({ upstream, replica, drainedAt }) => ({
      upstream,
      replica: replica ?? "",
      since: drainedAt.getTime() / 1000,
    }));
  if (isPrivate) return open.map(({ since, ...labels }) => [labels, since]);
  return open.length > 0 ? [[{ upstream: "", replica: "" }, Math.min(...open.map(({ since }) => since))]] : [];
}

function recordRun({ inc, observe }: Pick<Instruments, "inc" | "observe">, ended: Ended, traceId?: string): void {
  const { operation, model, outcome, errorCode, usage, firstPart_ms, total_ms } = ended;
  inc("inference_requests_total", { operation, model, outcome, code: errorCode ?? "" });
  for (const [of, field] of tokenClasses) inc("inference_tokens_total", { model, class: of }, usage[field]);
  inc("inference_reasoning_tokens_total", { model }, usage.reasoningTokens);
  observe("inference_duration_seconds", { model }, total_ms / 1000, traceId);
  if (firstPart_ms !== null) {
    observe("inference_time_to_first_part_seconds", { model }, firstPart_ms / 1000, traceId);
  }
  const perToken_s = perOutputToken_s(ended);
  if (perToken_s !== null) observe("inference_time_per_output_token_seconds", { model }, perToken_s);
}

/** The classes of tokens: for each, the label's value, and the field of `Usage` that has its number. */
const tokenClasses = [
  ["input", "inputTokens"],
  ["cached_input", "cachedInputTokens"],
  ["cache_write", "cacheWriteTokens"],
  ["output", "outputTokens"],
] as const;

/**
 * The seconds for each output token after the first. Null if the answer was not streamed, broke off, or has at most one
 * token.
 */
export function perOutputToken_s({ stream, outcome, usage, firstPart_ms, total_ms }: Ended): number | null {
  if (!stream || outcome !== "completed" || firstPart_ms === null || usage.outputTokens < 2) return null;
  return Math.max(0, total_ms - firstPart_ms) / 1000 / (usage.outputTokens - 1);
}

function storeMetrics(inc: Instruments["inc"], observe: Instruments["observe"]): StoreWatcher {
  return {
    answered(store: StoreName, ms, failure) {
      observe("store_statement_duration_seconds", { store }, ms / 1000);
      if (failure) inc("store_statement_failures_total", { store, fault: failure });
    },
    opened: (store) => inc("store_connections_opened_total", { store }),
    lost: (store) => inc("store_connections_lost_total", { store }),
  };
}
