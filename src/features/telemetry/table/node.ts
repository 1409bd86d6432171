/** Metrics of a node's stores and of its process. Pure. */
import { bounds, type MetricTable, short_s } from "../metric.ts";

const { store } = bounds;

export const nodeMetrics = {
  store_statement_duration_seconds: {
    type: "histogram",
    help: "From sending a statement or command to a store to its answer, failures included.",
    question: "Which store is slow?",
    labels: { store },
    buckets: short_s,
  },
  store_statement_failures_total: {
    type: "counter",
    help: "Statements and commands that failed, by store and whose fault it was: the connection's, or the statement's.",
    question: "Which store is away, or refuses?",
    labels: { store, fault: ["connection", "statement"] },
  },
  store_connections: {
    type: "gauge",
    help: "Connections to a store, by state: busy ones wait for an answer or are in a transaction.",
    question: "Is the pool used up?",
    labels: { store, state: ["idle", "busy"] },
  },
  store_connection_waiters: {
    type: "gauge",
    help: "Statements and transactions that wait for a free connection.",
    question: "Who waits for the pool?",
    labels: { store },
  },
  store_connections_opened_total: {
    type: "counter",
    help: "Connections that were begun, by store.",
    question: "Does the node connect again and again?",
    labels: { store },
  },
  store_connections_lost_total: {
    type: "counter",
    help: "Connections that ended other than by the node's wish, or were never had, by store.",
    question: "Who drops connections?",
    labels: { store },
  },
  database_timeline: {
    type: "gauge",
    across: "max",
    help: "The timeline of the Postgres server; a replica that takes over begins the next.",
    question: "Has another server taken over?",
  },
  database_oldest_snapshot_transactions: {
    type: "gauge",
    across: "max",
    help: "Transactions that began since the oldest one that still runs or reads; rows that died since then stay.",
    question: "Does a dump or a forgotten session hold up vacuum?",
  },
  database_dead_rows: {
    type: "gauge",
    across: "max",
    help: "Dead rows of all tables, as the server counts them.",
    question: "Does vacuum keep up?",
  },
  database_unfrozen_transactions: {
    type: "gauge",
    across: "max",
    help: "Transactions since all rows were last frozen; at two thousand million the server takes no writes.",
    question: "How far is the server from refusing writes?",
  },
  process_event_loop_delay_seconds: {
    type: "gauge",
    across: "worker",
    help: "How late timers were since the last look at this metric.",
    question: "Does something block the node?",
    labels: { statistic: ["mean", "p99", "max"] },
  },
  upstream_read_pause_seconds: {
    type: "gauge",
    across: "worker",
    help: "How long a busy process pauses the socket of an engine after each read of a stream.",
    question: "Do tokens come in portions because the node is busy?",
  },
  process_memory_bytes: {
    type: "gauge",
    across: "worker",
    help: "Memory of the process by kind; array_buffers are part of external.",
    question: "What grows?",
    labels: { kind: ["heap_used", "heap_total", "external", "array_buffers"] },
  },
  process_resident_memory_bytes: {
    type: "gauge",
    across: "worker",
    help: "Resident memory of the process.",
    question: "How near is the node to its memory limit?",
  },
  process_cpu_seconds_total: {
    type: "counter",
    across: "worker",
    help: "CPU time of the process, user and system.",
    question: "How much CPU does the node use?",
  },
  process_open_fds: {
    type: "gauge",
    across: "worker",
    help: "Descriptors that the process has open.",
    question: "How near is the node to its descriptors?",
  },
  process_max_fds: {
    type: "gauge",
    across: "worker",
    help: "Descriptors that the process may have open.",
    question: "How many connections can the node have?",
  },
  process_start_time_seconds: {
    type: "gauge",
    across: "worker",
    help: "When the process began, in Unix seconds.",
    question: "Did the node restart?",
  },
  node_workers: {
    type: "gauge",
    across: "max",
    help: "Processes that serve: those that are wanted, and those that do. Both 1 on a node without workers.",
    question: "Is the node whole?",
    labels: { state: ["wanted", "serving"] },
  },
  node_worker_deaths_total: {
    type: "counter",
    across: "max",
    help: "Workers that ended unasked, and were replaced, since the node began.",
    question: "Do workers die?",
  },
  configuration_info: {
    type: "gauge",
    across: "max",
    help: "The configuration in force, by its hash; /readyz?verbose has it too. Always 1.",
    question: "Do all nodes serve the same?",
    labels: { hash: 1 },
  },
  build_info: {
    type: "gauge",
    across: "max",
    help: "The running version. Always 1.",
    question: "Which version runs where?",
    labels: { version: 1 },
  },
} as const satisfies MetricTable;
