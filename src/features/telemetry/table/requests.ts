/** Metrics of requests, callers and admission. Pure. */
import { bounds, long_s, type MetricTable, short_s } from "../metric.ts";

export const requestMetrics = {
  http_requests_total: {
    type: "counter",
    help: "Requests that ended. Status 499: the client left; a stream that failed after its 200 has that of its fault.",
    labels: { route: bounds.route, status: bounds.status, code: bounds.code },
  },
  http_request_duration_seconds: {
    type: "histogram",
    help: "Time from a request's arrival to the last byte of its answer.",
    labels: { route: bounds.route },
    buckets: long_s,
    hasExemplars: true,
  },
  http_open_requests: {
    type: "gauge",
    help: "Open requests.",
  },
  http_open_streams: {
    type: "gauge",
    help: "Open streams; they are open requests too.",
  },
  http_open_websockets: {
    type: "gauge",
    help: "Open WebSockets. Each response on one is an open request too.",
  },
  http_open_websockets_max: {
    type: "gauge",
    help: "WebSockets that the node may have.",
  },
  http_kept_answers: {
    type: "gauge",
    help: "Kept answers that the node writes or reads now.",
  },
  http_kept_answers_max: {
    type: "gauge",
    help: "Kept answers that the node may write or read at once.",
  },
  http_kept_bytes_total: {
    type: "counter",
    help: "Bytes of the logs of ended answers that the node has written.",
  },
  http_answers_unkept_total: {
    type: "counter",
    help: "Answers that were delivered but not kept: too large, or their store was away.",
    labels: { why: ["size", "store"] },
  },
  http_replays_total: {
    type: "counter",
    help: "Requests that got the kept answer of an earlier one.",
  },
  http_memory_in_flight_bytes: {
    type: "gauge",
    help: "Bytes of the node's memory budget that open requests hold.",
  },
  http_shed_total: {
    type: "counter",
    help: "Requests refused because memory (of a key, the node or the process) or descriptors are full.",
    labels: { full: ["key", "node", "process", "descriptors"] },
  },
  authentication_failures_total: {
    type: "counter",
    help: "Requests whose API key was refused or could not be checked.",
    labels: { code: bounds.code },
  },
  authentication_absent_keys: {
    type: "gauge",
    help: "API keys that the node remembers not to exist.",
  },
  authentication_existing_secrets: {
    type: "gauge",
    help: "API keys that the node knows to exist.",
    across: "max",
  },
  key_revocation_propagation_seconds: {
    type: "histogram",
    help: "Time from a change of a key or organization until this node knows of it.",
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  },
  admission_decisions_total: {
    type: "counter",
    help: "Inference requests, by decision and reason: plan, extra usage, or the code of the refusal.",
    labels: { decision: ["granted", "refused"], reason: ["plan", "extra", ...bounds.code] },
  },
  admission_grant_wait_seconds: {
    type: "histogram",
    help: "Time from asking the ledger for a grant to its answer, or error.",
    labels: { answer: ["granted", "refused", "error"] },
    buckets: short_s,
  },
  admission_batch_commands: {
    type: "histogram",
    help: "Commands in a batch for the ledger, of at most 256.",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  admission_batch_duration_seconds: {
    type: "histogram",
    help: "Time from sending a batch to the ledger to its answer, waits for locks included.",
    buckets: short_s,
  },
  admission_batch_lock_wait_seconds: {
    type: "histogram",
    help: "How long an answered batch waited for the locks of its organizations.",
    buckets: [0.0001, 0.00025, ...short_s],
  },
  admission_batch_failures_total: {
    type: "counter",
    help: "Batches that the ledger did not answer; their commands are sent again.",
  },
} as const satisfies MetricTable;
