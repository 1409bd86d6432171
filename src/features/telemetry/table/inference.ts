/** Metrics of inference: answers, tokens, engines. Pure. */
import { bounds, long_s, type MetricTable } from "../metric.ts";

const { model, upstream, replica } = bounds;

export const inferenceMetrics = {
  inference_requests_total: {
    type: "counter",
    help: "Admitted inference requests that ended.",
    labels: { operation: bounds.operation, model, outcome: bounds.outcome, code: bounds.code },
  },
  inference_duration_seconds: {
    type: "histogram",
    help: "Time from an admitted request's arrival to the end of its answer.",
    labels: { model },
    buckets: long_s,
    hasExemplars: true,
  },
  inference_time_to_first_part_seconds: {
    type: "histogram",
    help: "Time from a request's arrival to the first part of its answer.",
    labels: { model },
    buckets: long_s,
    hasExemplars: true,
  },
  inference_time_per_output_token_seconds: {
    type: "histogram",
    help: "Time between two output tokens of a stream.",
    labels: { model },
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5],
  },
  inference_tokens_total: {
    type: "counter",
    help: "Tokens of admitted requests; each token is in one class.",
    labels: { model, class: bounds.tokens },
  },
  inference_reasoning_tokens_total: {
    type: "counter",
    help: "Output tokens that are reasoning, which inference_tokens_total has as output.",
    labels: { model },
  },
  upstream_attempts_total: {
    type: "counter",
    help: "Attempts at engines, by how they ended.",
    labels: { upstream, outcome: bounds.attempt },
  },
  upstream_unknown_reasons_total: {
    type: "counter",
    help: "Answers with a finish reason that Sluice does not know; they count as ended normally.",
    labels: { upstream },
  },
  upstream_losses_total: {
    type: "counter",
    help: "Attempts in which the engine was not sent a part of the request.",
    labels: { upstream, loss: bounds.loss },
  },
  upstream_stray_answer_total: {
    type: "counter",
    help: "Times that an engine sent more than the answer to a request.",
    labels: { upstream },
  },
  upstream_routes: {
    type: "gauge",
    across: "worker",
    help: "Routes by state: closed (healthy), crowded, open (failing), half-open (retried), resting (full), down (check fails), unresolved or drained.",
    labels: { model, upstream, state: bounds.routeState },
  },
  upstream_drained_since_seconds: {
    type: "gauge",
    across: "max",
    help: "Unix time since which an engine is drained without an end, by address (empty: all).",
    labels: { upstream, replica },
  },
  upstream_time_to_first_part_seconds: {
    type: "histogram",
    help: "Time from the request to an engine to the first part of its answer.",
    labels: { upstream },
    buckets: long_s,
  },
  upstream_tokens_total: {
    type: "counter",
    help: "Tokens of admitted requests, by the upstream asked last.",
    labels: { model, upstream, class: bounds.tokens },
  },
  upstream_uncharged_tokens_total: {
    type: "counter",
    help: "Expected input tokens of attempts without a charge.",
    labels: { upstream, outcome: bounds.attempt },
  },
  upstream_queue_length: {
    type: "gauge",
    help: "Requests that wait for room at an engine, under its first model; one may wait for several.",
    labels: { model, upstream },
  },
  upstream_queue_wait_seconds: {
    type: "histogram",
    help: "Wait for room at an engine, by outcome: served, left (the client) or full (refused).",
    labels: { model, outcome: ["served", "left", "full"] },
    buckets: long_s,
  },
  upstream_slots: {
    type: "gauge",
    help: "Requests that this process may have under a limit of the fleet.",
    labels: { upstream },
  },
  upstream_slots_apart: {
    type: "gauge",
    across: "max",
    help: "Whether (1 or 0) the process keeps to its even share of a fleet's limit.",
    labels: { upstream },
  },
  upstream_requests_in_flight: {
    type: "gauge",
    help: "Requests that engines are serving now, under a route's first model.",
    labels: { model, upstream },
  },
  upstream_tokens_in_flight: {
    type: "gauge",
    help: "Tokens of requests in flight: inputs, and at most 1,024 for each answer.",
    labels: { model, upstream },
  },
  upstream_addresses: {
    type: "gauge",
    across: "max",
    help: "Addresses in use of an upstream whose name is resolved anew (resolve).",
    labels: { upstream },
  },
  upstream_resolutions_total: {
    type: "counter",
    help: "Resolutions of an upstream's name, by outcome: answered, many, failed, empty or own.",
    labels: { upstream, outcome: ["answered", "many", "failed", "empty", "own"] },
  },
  upstream_replica_attempts_total: {
    type: "counter",
    help: "Attempts at each address of a resolved upstream, by how they ended.",
    labels: { upstream, replica, outcome: bounds.attempt },
  },
  upstream_replica_routes: {
    type: "gauge",
    help: "Routes to each address of a resolved upstream, by state.",
    labels: { upstream, replica, state: bounds.routeState },
  },
  upstream_replica_requests_in_flight: {
    type: "gauge",
    help: "Requests that each address of a resolved upstream is serving now.",
    labels: { upstream, replica },
  },
} as const satisfies MetricTable;
