/** Counters for Prometheus. Low cardinality: public models and outcomes, never keys or organizations. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { RouteView } from "../routing/view.ts";
import type { SettleAnswer } from "../store/ledger.ts";
import type { AttemptKind } from "../upstream/attempt.ts";
import { divergence } from "../usage/divergence.ts";
import type { Ended } from "../usage/run.ts";
import type { Waited } from "../usage/walk.ts";

export interface Metrics {
  request(route: string, status: number, seconds: number): void;
  inference(ended: Ended): void;
  /** A credential was refused, with this fault's code. */
  unauthenticated(code: string): void;
  /** A request was refused because something of the node is full: memory or descriptors. */
  shed(what: Shed): void;
  /** Over one inference request of a known caller: granted from `plan` or `extra`, or refused with a fault's code. */
  decision(decision: "granted" | "refused", reason: string): void;
  /** An attempt at an engine has ended. */
  attempt(upstream: string, outcome: AttemptKind): void;
  /** An engine has begun to answer, so long after it was asked. */
  firstPart(upstream: string, seconds: number): void;
  /** A request has waited for room at an engine. */
  waited(wait: Waited): void;
  /** How the routes are, read when metrics are asked for. */
  routes(read: () => RouteView[]): void;
  /** So many holds of nodes that are gone were settled. */
  recovered(requests: number): void;
  /** So many confirmed settlements were not in the database any more. */
  receiptsLost(count: number): void;
  /** What a settlement of this node charged and could not charge: docs/design/usage.md, Settlement. */
  settled(answer: SettleAnswer): void;
  /** A value that is read when metrics are asked for. */
  gauge(name: string, help: string, read: () => number): void;
  /** What is told by labels: always 1. */
  info(name: string, help: string, read: () => Record<string, string>): void;
  revocationPropagation(seconds: number): void;
  render(): Promise<string>;
}

/** `key`, `node`, `process`: of memory (memory.ts). */
export type Shed = "key" | "node" | "process" | "descriptors";

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

export interface MetricsSettings {
  /** Of the build. */
  version: string;
  /** Whether only the operator reads them: clients must not read names of engines. */
  namesUpstreams: boolean;
}

export function prometheusMetrics({ version, namesUpstreams }: MetricsSettings): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "http_requests_total",
    help: "Requests answered, by route and status.",
    labelNames: ["route", "status"] as const,
    registers,
  });
  const duration = new Histogram({
    name: "http_request_duration_seconds",
    help: "From the request's arrival to the last byte of its answer.",
    labelNames: ["route"] as const,
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
    registers,
  });
  const inference = new Counter({
    name: "inference_requests_total",
    help: "Admitted inference requests, by operation, public model and outcome.",
    labelNames: ["operation", "model", "outcome"] as const,
    registers,
  });
  const decisions = new Counter({
    name: "admission_decisions_total",
    help: "Inference requests of authenticated callers, by decision and reason: plan or extra usage, or the code of the refusal.",
    labelNames: ["decision", "reason"] as const,
    registers,
  });
  const attempts = new Counter({
    name: "upstream_attempts_total",
    help: "Attempts at engines, by upstream and how they ended.",
    labelNames: ["upstream", "outcome"] as const,
    registers,
  });
  const failures = new Counter({
    name: "authentication_failures_total",
    help: "Requests whose API key was refused or could not be checked, by the refusal's code.",
    labelNames: ["code"] as const,
    registers,
  });
  const sheds = new Counter({
    name: "http_shed_total",
    help: "Requests refused because something is full: the memory of a key, of the node or of the process, or descriptors.",
    labelNames: ["full"] as const,
    registers,
  });
  const recovered = new Counter({
    name: "usage_recovered_total",
    help: "Lapsed holds of dead nodes that this node has settled at their last checkpoint.",
    registers,
  });
  const receiptsLost = new Counter({
    name: "usage_receipts_lost_total",
    help: "Settlements that the database had confirmed and did not have any more, as this node was the first to notice.",
    registers,
  });
  const units = new Counter({
    name: "usage_units_total",
    help: "Micro-units of requests that this node has settled: charged, or not charged because no limit had room for them.",
    labelNames: ["class"] as const,
    registers,
  });
  const tokens = new Counter({
    name: "inference_tokens_total",
    help: "Tokens of admitted requests, by public model and class.",
    labelNames: ["model", "class"] as const,
    registers,
  });
  const rejected = new Counter({
    name: "usage_reports_rejected_total",
    help: "Reports of engines that were not taken as they are, by upstream, half (input or output) and kind.",
    labelNames: ["upstream", "half", "kind"] as const,
    registers,
  });
  const diverged = divergence();
  new Gauge({
    name: "usage_report_divergence",
    help: "Output tokens that engines reported ÷ those that were counted, of late answers, by public model and quantile.",
    labelNames: ["model", "quantile"] as const,
    registers,
    collect() {
      this.reset();
      for (const { model, quantile, ratio } of diverged.read()) this.set({ model, quantile }, ratio);
    },
  });
  const firstPart = new Histogram({
    name: "inference_time_to_first_part_seconds",
    help: "From the request's arrival to the first part of the answer.",
    labelNames: ["model"] as const,
    buckets: [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60],
    registers,
  });
  const firstPartOf = new Histogram({
    name: "upstream_time_to_first_part_seconds",
    help: "From the request to an engine to the first part of its answer, by upstream.",
    labelNames: ["upstream"] as const,
    buckets: [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120],
    registers,
  });
  const waits = new Histogram({
    name: "upstream_queue_wait_seconds",
    help: "How long requests waited for room at an engine, by public model and outcome: served, left, or full (refused).",
    labelNames: ["model", "outcome"] as const,
    buckets: [0.005, 0.02, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60],
    registers,
  });
  const revocation = new Histogram({
    name: "key_revocation_propagation_seconds",
    help: "From a change of a key or organization, such as a revocation, until this node knows of it.",
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  });
  new Gauge({ name: "build_info", help: "The running version.", labelNames: ["version"] as const, registers }).set(
    { version },
    1,
  );

  const named = (upstream: string | null) => (namesUpstreams ? (upstream ?? "") : "");
  return {
    request(route, status, seconds) {
      requests.inc({ route, status: String(status) });
      duration.observe({ route }, seconds);
    },
    inference({ operation, model, upstream, outcome, usage, firstPart_ms, reportRejected, divergence }) {
      inference.inc({ operation, model, outcome });
      tokens.inc({ model, class: "input" }, usage.inputTokens);
      tokens.inc({ model, class: "cached_input" }, usage.cachedInputTokens);
      tokens.inc({ model, class: "cache_write" }, usage.cacheWriteTokens);
      tokens.inc({ model, class: "output" }, usage.outputTokens);
      if (firstPart_ms !== null) firstPart.observe({ model }, firstPart_ms / 1000);
      if (divergence !== null) diverged.observe(model, divergence);
      for (const half of ["input", "output"] as const) {
        const kind = reportRejected?.[half];
        if (kind) rejected.inc({ upstream: named(upstream), half, kind });
      }
    },
    attempt: (upstream, outcome) => attempts.inc({ upstream: named(upstream), outcome }),
    firstPart: (upstream, seconds) => firstPartOf.observe({ upstream: named(upstream) }, seconds),
    waited: ({ model, outcome, ms }) => waits.observe({ model, outcome }, ms / 1000),
    unauthenticated: (code) => failures.inc({ code }),
    shed: (full) => sheds.inc({ full }),
    decision: (decision, reason) => decisions.inc({ decision, reason }),
    settled(answer) {
      if (answer.answer !== "settled") return;
      units.inc({ class: "charged" }, answer.charged);
      units.inc({ class: "uncharged" }, answer.uncharged);
    },
    recovered: (requests) => recovered.inc(requests),
    receiptsLost: (count) => receiptsLost.inc(count),
    routes(read) {
      const gaugeOf = (
        name: string,
        help: string,
        labelNames: string[],
        add: (gauge: Gauge, view: RouteView) => void,
      ) =>
        new Gauge({
          ...{ name, help, labelNames, registers },
          collect() {
            this.reset();
            for (const view of read()) add(this, { ...view, upstream: named(view.upstream) });
          },
        });
      const states =
        "Routes by public model, upstream, and how they are: closed (asked), crowded, open, half-open, resting or down.";
      gaugeOf("upstream_routes", states, ["model", "upstream", "state"], (gauge, { model, upstream, state }) =>
        gauge.inc({ model, upstream, state }),
      );
      const labels = ["model", "upstream"];
      gaugeOf(
        "upstream_requests_in_flight",
        "Requests at engines now.",
        labels,
        (gauge, { model, upstream, requests }) => gauge.inc({ model, upstream }, requests),
      );
      const tokens = "Tokens of the requests at engines now: inputs, and at most 1,024 for each answer.";
      const queued =
        "Requests that wait for room at an engine now, for whichever of its models; one may wait for several.";
      gaugeOf("upstream_queue_length", queued, labels, (gauge, { model, upstream, waiting }) =>
        gauge.inc({ model, upstream }, waiting),
      );
      gaugeOf("upstream_tokens_in_flight", tokens, labels, (gauge, view) =>
        gauge.inc({ model: view.model, upstream: view.upstream }, view.tokens),
      );
    },
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    info(name, help, read) {
      new Gauge({
        name,
        help,
        labelNames: Object.keys(read()),
        registers,
        collect() {
          this.reset();
          this.set(read(), 1);
        },
      });
    },
    revocationPropagation: (seconds) => revocation.observe(seconds),
    render: () => registry.metrics(),
  };
}
