/** Metrics of requests, callers and admission. Pure. */
import { bounds, long_s, type MetricTable, short_s } from "../metric.ts";

export const requestMetrics = {
  http_requests_total: {
    type: "counter",
    help: "Requests that ended, by route, status and fault code. What failed in mid-stream counts as its fault's status, what the client left as 499.",
    question: "How many requests come, and which fail with what?",
    labels: { route: bounds.route, status: bounds.status, code: bounds.code },
  },
  http_request_duration_seconds: {
    type: "histogram",
    help: "From the request's arrival to the last byte of its answer, by route.",
    question: "How long do answers take?",
    labels: { route: bounds.route },
    buckets: long_s,
    hasExemplars: true,
  },
  http_open_requests: {
    type: "gauge",
    help: "Requests that are open now.",
    question: "How busy is the node, and is it drained?",
  },
  http_open_streams: {
    type: "gauge",
    help: "Streams that are open now; they are open requests too.",
    question: "How many answers are being streamed?",
  },
  http_open_websockets: {
    type: "gauge",
    help: "WebSockets that are open now. Each response on one is an open request too.",
    question: "How many clients keep a WebSocket?",
  },
  http_open_websockets_max: {
    type: "gauge",
    help: "WebSockets that the node may have at once. A client beyond them gets 426, and uses POST.",
    question: "How near is the node to sending clients to POST?",
  },
  http_kept_answers: {
    type: "gauge",
    help: "Kept answers that the node writes or reads now: those of idempotency keys and background responses.",
    question: "How near is the node to `answers.open_max`?",
  },
  http_kept_answers_max: {
    type: "gauge",
    help: "Kept answers that the node may write or read at once: `answers.open_max`. A request beyond them gets 503.",
    question: "How near is the node to refusing idempotency keys?",
  },
  http_kept_bytes_total: {
    type: "counter",
    help: "Bytes of the logs of ended answers that the node has written. Redis, or the database without one, keeps them for `answers.kept_hours`.",
    question: "How much of Redis or the database do kept answers take?",
  },
  http_answers_unkept_total: {
    type: "counter",
    help: "Answers that could not be kept to their end: they were larger than `answers.answer_bytes_max`, or the store of their log was away or had forgotten it. Their clients got them all the same.",
    question: "Can clients rely on their idempotency keys?",
    labels: { why: ["size", "store"] },
  },
  http_replays_total: {
    type: "counter",
    help: "Requests with an idempotency key that got the answer of an earlier one.",
    question: "How often do clients ask again?",
  },
  http_memory_in_flight_bytes: {
    type: "gauge",
    help: "Bytes that open requests hold of the node's budget.",
    question: "How near is the node to refusing requests for memory?",
  },
  http_shed_total: {
    type: "counter",
    help: "Requests refused because something is full: the memory of a key, of the node or of the process, or descriptors.",
    question: "What is the node short of?",
    labels: { full: ["key", "node", "process", "descriptors"] },
  },
  authentication_failures_total: {
    type: "counter",
    help: "Requests whose API key was refused or could not be checked, by the refusal's code.",
    question: "Does somebody try keys, or use an old one?",
    labels: { code: bounds.code },
  },
  authentication_absent_keys: {
    type: "gauge",
    help: "API keys that are remembered not to exist.",
    question: "How many wrong keys were tried lately?",
  },
  authentication_existing_secrets: {
    type: "gauge",
    help: "Secrets of API keys that this node knows to exist, so that the first use of each waits for nobody.",
    question: "Has the node read which keys there are?",
    across: "max",
  },
  key_revocation_propagation_seconds: {
    type: "histogram",
    help: "From a change of a key or organization, such as a revocation, until this node knows of it.",
    question: "How soon does a revocation count?",
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  },
  admission_decisions_total: {
    type: "counter",
    help: "Inference requests of authenticated callers, by decision and reason: plan or extra usage, or the code of the refusal.",
    question: "Who is let in, and why is the rest refused?",
    labels: { decision: ["granted", "refused"], reason: ["plan", "extra", ...bounds.code] },
  },
  admission_grant_wait_seconds: {
    type: "histogram",
    help: "From asking the ledger for a grant to its answer, by answer; error: it did not answer in time.",
    question: "How much of a request's time is admission?",
    labels: { answer: ["granted", "refused", "error"] },
    buckets: short_s,
  },
  admission_batch_commands: {
    type: "histogram",
    help: "Commands in a batch for the ledger, which takes 256 at most.",
    question: "Are batches full, so that commands queue?",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  admission_batch_duration_seconds: {
    type: "histogram",
    help: "From sending a batch to the ledger to its answer, with the wait for the locks of its organizations.",
    question: "Is the ledger slow?",
    buckets: short_s,
  },
  admission_batch_lock_wait_seconds: {
    type: "histogram",
    help: "How long a batch that was answered waited in the database for the locks of its organizations.",
    question: "Is an organization hot, or does somebody hold its lock?",
    buckets: [0.0001, 0.00025, ...short_s],
  },
  admission_batch_failures_total: {
    type: "counter",
    help: "Batches that the ledger did not answer; their commands are sent again.",
    question: "Is the database away?",
  },
} as const satisfies MetricTable;
