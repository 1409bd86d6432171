/** Metrics of inference: answers, tokens, engines. Pure. */
import { bounds, long_s, type MetricTable } from "../metric.ts";

const { model, upstream, replica } = bounds;

export const inferenceMetrics = {
  inference_requests_total: {
    type: "counter",
    help: "Admitted inference requests that ended, by operation, public model, outcome and fault code.",
    question: "Which model fails, and how?",
    labels: { operation: bounds.operation, model, outcome: bounds.outcome, code: bounds.code },
  },
  inference_duration_seconds: {
    type: "histogram",
    help: "From an admitted request's arrival to the end of its answer, by public model.",
    question: "Which model is slow?",
    labels: { model },
    buckets: long_s,
    hasExemplars: true,
  },
  inference_time_to_first_part_seconds: {
    type: "histogram",
    help: "From the request's arrival to the first part of the answer, by public model.",
    question: "How long do users wait until something shows?",
    labels: { model },
    buckets: long_s,
    hasExemplars: true,
  },
  inference_time_per_output_token_seconds: {
    type: "histogram",
    help: "Between two output tokens of a complete stream, after its first part, by public model.",
    question: "How fast do answers flow?",
    labels: { model },
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5],
  },
  inference_tokens_total: {
    type: "counter",
    help: "Tokens of admitted requests, by public model and class; each token is in one class.",
    question: "What is read and written, and how much does the cache save?",
    labels: { model, class: bounds.tokens },
  },
  inference_reasoning_tokens_total: {
    type: "counter",
    help: "Output tokens that are reasoning, by public model; they are in inference_tokens_total as output.",
    question: "How much of the output is reasoning?",
    labels: { model },
  },
  upstream_attempts_total: {
    type: "counter",
    help: "Attempts at engines, by upstream and how they ended.",
    question: "Which engine fails, and how?",
    labels: { upstream, outcome: bounds.attempt },
  },
  upstream_routes: {
    type: "gauge",
    across: "worker",
    help: "Routes by public model, upstream, and how they are: closed (asked), crowded, open, half-open, resting (full, for as long as it said), down (its check fails), unresolved (no address of its name is known) or drained (by an operator).",
    question: "Which engines are asked now?",
    labels: { model, upstream, state: bounds.routeState },
  },
  upstream_drained_since_seconds: {
    type: "gauge",
    across: "max",
    help: "Since when an engine is drained that somebody has to resume, in Unix seconds, by upstream and address (empty: all of them). One that is resumed by itself has none.",
    question: "Which drained engine was forgotten?",
    labels: { upstream, replica },
  },
  upstream_time_to_first_part_seconds: {
    type: "histogram",
    help: "From the request to an engine to the first part of its answer, by upstream.",
    question: "Which engine is slow to begin?",
    labels: { upstream },
    buckets: long_s,
  },
  upstream_tokens_total: {
    type: "counter",
    help: "Tokens of admitted requests by public model, by the upstream that was asked last, and by class. Their rate is tokens a second.",
    question: "How much does each engine read and write a second, and where does the cache help?",
    labels: { model, upstream, class: bounds.tokens },
  },
  upstream_uncharged_tokens_total: {
    type: "counter",
    help: "Input tokens, as expected, of attempts for which nobody was charged, by upstream and how they ended: they were abandoned, or failed. What such an engine wrote is not counted.",
    question: "What do attempts in vain cost?",
    labels: { upstream, outcome: bounds.attempt },
  },
  upstream_queue_length: {
    type: "gauge",
    help: "Requests that wait for room at an engine now, for whichever of its models; one may wait for several.",
    question: "Which engine is full?",
    labels: { model, upstream },
  },
  upstream_queue_wait_seconds: {
    type: "histogram",
    help: "How long requests waited for room at an engine, by public model and outcome: served, left (the client) or full (refused).",
    question: "How long do users wait for engines that are full?",
    labels: { model, outcome: ["served", "left", "full"] },
    buckets: long_s,
  },
  upstream_requests_in_flight: {
    type: "gauge",
    help: "Requests at engines now, by public model and upstream.",
    question: "Where does the load go?",
    labels: { model, upstream },
  },
  upstream_tokens_in_flight: {
    type: "gauge",
    help: "Tokens of the requests at engines now: inputs, and at most 1,024 for each answer.",
    question: "How heavy is that load?",
    labels: { model, upstream },
  },
  upstream_addresses: {
    type: "gauge",
    across: "max",
    help: "Addresses in use of an upstream whose name is resolved anew (resolve).",
    question: "How many engines does the name have?",
    labels: { upstream },
  },
  upstream_resolutions_total: {
    type: "counter",
    help: "Resolutions of such a name, by outcome: answered, many (more addresses than are asked), failed (nobody could tell), empty (it has no address), or own (it leads to this machine).",
    question: "Does the name still resolve?",
    labels: { upstream, outcome: ["answered", "many", "failed", "empty", "own"] },
  },
  upstream_replica_attempts_total: {
    type: "counter",
    help: "Attempts at the engines behind such a name, by upstream, address and how they ended. An address that is gone has none.",
    question: "Which of the replicas fails, and how?",
    labels: { upstream, replica, outcome: bounds.attempt },
  },
  upstream_replica_routes: {
    type: "gauge",
    help: "Routes to them, by upstream, address and how they are.",
    question: "Which of the replicas is asked now?",
    labels: { upstream, replica, state: bounds.routeState },
  },
  upstream_replica_requests_in_flight: {
    type: "gauge",
    help: "Requests at them now, by upstream and address.",
    question: "Is the load even?",
    labels: { upstream, replica },
  },
} as const satisfies MetricTable;
