/** Metrics of a node's stores and of its process. Pure. */
import { bounds, type MetricTable, short_s } from "../metric.ts";

const { store } = bounds;

export const nodeMetrics = {
  store_statement_duration_seconds: {
    type: "histogram",
    help: "Time from sending a statement or command to its answer, failures included.",
    labels: { store },
    buckets: short_s,
  },
  store_statement_failures_total: {
    type: "counter",
    help: "Failed statements and commands, by cause: the connection, or the statement.",
    labels: { store, fault: ["connection", "statement"] },
  },
  store_connections: {
    type: "gauge",
    help: "Connections to a store. Busy ones wait for an answer or are in a transaction.",
    labels: { store, state: ["idle", "busy"] },
  },
  store_connection_waiters: {
    type: "gauge",
    help: "Statements and transactions that wait for a free connection.",
    labels: { store },
  },
  store_connections_opened_total: {
    type: "counter",
    help: "Connections that were begun.",
    labels: { store },
  },
  store_connections_lost_total: {
    type: "counter",
    help: "Connections that failed, or that the node did not close itself.",
    labels: { store },
  },
  database_timeline: {
    type: "gauge",
    across: "max",
    help: "The timeline of the Postgres server; a replica that takes over begins the next.",
  },
  database_oldest_snapshot_transactions: {
    type: "gauge",
    across: "max",
    help: "Transactions since the oldest one that still runs.",
  },
  database_dead_rows: {
    type: "gauge",
    across: "max",
    help: "Dead rows of all tables, as the server counts them.",
  },
  database_unfrozen_transactions: {
    type: "gauge",
    across: "max",
    help: "Transactions since all rows were last frozen.",
  },
  process_event_loop_delay_seconds: {
    type: "gauge",
    across: "worker",
    help: "How late timers fired since the last scrape.",
    labels: { statistic: ["mean", "p99", "max"] },
  },
  upstream_read_pause_seconds: {
    type: "gauge",
    across: "worker",
    help: "Pause of a busy process after each read of a stream from an engine.",
  },
  process_memory_bytes: {
    type: "gauge",
    across: "worker",
    help: "Memory of the process by kind; array_buffers are part of external.",
    labels: { kind: ["heap_used", "heap_total", "external", "array_buffers"] },
  },
  process_resident_memory_bytes: {
    type: "gauge",
    across: "worker",
    help: "Resident memory of the process.",
  },
  process_cpu_seconds_total: {
    type: "counter",
    across: "worker",
    help: "CPU time of the process, user and system.",
  },
  process_open_fds: {
    type: "gauge",
    across: "worker",
    help: "Descriptors that the process has open.",
  },
  process_max_fds: {
    type: "gauge",
    across: "worker",
    help: "Descriptors that the process may have open.",
  },
  process_start_time_seconds: {
    type: "gauge",
    across: "worker",
    help: "When the process began, in Unix seconds.",
  },
  node_ready: {
    type: "gauge",
    across: "max",
    help: "Whether (1 or 0) /readyz succeeds.",
  },
  node_workers: {
    type: "gauge",
    across: "max",
    help: "Processes that serve: wanted, and serving.",
    labels: { state: ["wanted", "serving"] },
  },
  node_worker_deaths_total: {
    type: "counter",
    across: "max",
    help: "Workers that ended unasked, and were replaced.",
  },
  configuration_info: {
    type: "gauge",
    across: "max",
    help: "The configuration in force, by its hash. Always 1.",
    labels: { hash: 1 },
  },
  build_info: {
    type: "gauge",
    across: "max",
    help: "The running version. Always 1.",
    labels: { version: 1 },
  },
} as const satisfies MetricTable;
