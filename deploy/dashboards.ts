// The Grafana dashboards, from which scripts/dashboards.ts writes deploy/grafana: what is asked, in which panel. Pure.

export interface Panel {
  title: string;
  unit: string;
  /** What a line is called, and its query. */
  queries: [legend: string, query: string][];
}

/** Restricts a metric whose name other programs have, too (vLLM, exporters), to the nodes of Sluice. */
const own = 'job="sluice"';
/** Restricts requests to those of clients: probes and scrapes are many, and succeed. */
const clients = `${own},route=~"/v1/.+|/v2/.+"`;
const rate = (metric: string, by: string, matchers = "") => `sum by (${by}) (rate(${metric}${matchers}[5m]))`;
const quantile = (q: number, metric: string, by: string, matchers: string) =>
  `histogram_quantile(${q}, sum by (le${by ? `, ${by}` : ""}) (rate(${metric}_bucket${matchers}[5m])))`;
const slow = (metric: string, by = "", matchers = ""): Panel["queries"] => {
  const label = by ? `{{${by}}} ` : "";
  return [
    [`${label}p50`, quantile(0.5, metric, by, matchers)],
    [`${label}p95`, quantile(0.95, metric, by, matchers)],
  ];
};
const panel = (title: string, unit: string, ...queries: Panel["queries"]): Panel => ({ title, unit, queries });

export const dashboards: Record<string, Panel[]> = {
  service: [
    panel("Requests", "reqps", ["{{status}}", rate("http_requests_total", "status", `{${own}}`)]),
    panel("Errors by code", "reqps", ["{{code}}", rate("http_requests_total", "code", `{${own},code!=""}`)]),
    panel("Share of server errors", "percentunit", [
      "5xx",
      // Without an error there is no series of one, and without a request nothing to divide by: the share is 0 in both cases.
      `(sum(rate(http_requests_total{${clients},status=~"5.."}[5m])) or vector(0)) / (sum(rate(http_requests_total{${clients}}[5m])) > 0) or vector(0)`,
    ]),
    panel("Duration by route", "s", ...slow("http_request_duration_seconds", "route", `{${own}}`)),
    panel("Time to first part", "s", ...slow("inference_time_to_first_part_seconds", "model")),
    panel("Time per output token", "s", ...slow("inference_time_per_output_token_seconds", "model")),
    panel(
      "Open requests",
      "short",
      ["requests", "sum(http_open_requests)"],
      ["streams", "sum(http_open_streams)"],
      ["WebSockets", "sum(http_open_websockets)"],
      ["kept answers", "sum(http_kept_answers)"],
    ),
    panel("Refused for room", "reqps", ["{{full}}", rate("http_shed_total", "full")]),
    panel("Repeats with an idempotency key", "reqps", ["repeats", "sum(rate(http_replays_total[5m]))"]),
    panel("Bytes of kept answers", "bytes", ["in 24 h", "sum(increase(http_kept_bytes_total[24h]))"]),
    panel("Answers not kept", "reqps", ["{{why}}", rate("http_answers_unkept_total", "why")]),
    panel(
      "Share of open kept answers and WebSockets",
      "percentunit",
      ["{{instance}} kept answers", "http_kept_answers / (http_kept_answers_max > 0)"],
      ["{{instance}} WebSockets", "http_open_websockets / (http_open_websockets_max > 0)"],
    ),
    panel("Memory", "bytes", ["{{instance}}", `process_resident_memory_bytes{${own}}`]),
    panel("CPU", "percentunit", ["{{instance}}", `rate(process_cpu_seconds_total{${own}}[5m])`]),
    panel("Event loop delay", "s", ["{{instance}} p99", 'process_event_loop_delay_seconds{statistic="p99"}']),
    panel("Pauses of engines' sockets", "s", ["{{instance}}", "upstream_read_pause_seconds"]),
    panel("Descriptors", "percentunit", ["{{instance}}", `process_open_fds{${own}} / (process_max_fds{${own}} > 0)`]),
    panel("Deaths of workers", "short", ["{{instance}}", "increase(node_worker_deaths_total[1h])"]),
    panel("Versions", "short", ["{{version}}", `count by (version) (build_info{${own}})`]),
    panel("Configurations", "short", ["{{hash}}", "count by (hash) (configuration_info)"]),
  ],
  fleet: [
    panel(
      "Nodes",
      "short",
      ["nodes", `count(build_info{${own}})`],
      ["versions", `count(count by (version) (build_info{${own}}))`],
    ),
    panel("Nodes by configuration", "short", ["{{hash}}", "count by (hash) (configuration_info)"]),
    panel("Up for", "s", ["{{instance}}", `time() - max by (instance) (process_start_time_seconds{${own}})`]),
    panel("Processes that serve", "short", ["{{instance}}", 'sum by (instance) (node_workers{state="serving"})']),
    panel("Open requests by node", "short", ["{{instance}}", "sum by (instance) (http_open_requests)"]),
    panel("Waiting for room by node", "short", ["{{instance}}", "sum by (instance) (upstream_queue_length)"]),
    panel(
      "Tokens a second by node",
      "short",
      ["{{instance}} in", rate("inference_tokens_total", "instance", '{class!="output"}')],
      ["{{instance}} out", rate("inference_tokens_total", "instance", '{class="output"}')],
    ),
    panel("Time to first part by node", "s", ...slow("inference_time_to_first_part_seconds", "instance")),
    panel("Drained routes", "short", ["{{upstream}}", 'sum by (upstream) (upstream_routes{state="drained"})']),
    panel("Drained, and to be resumed by somebody", "s", [
      "{{upstream}} {{replica}}",
      "time() - min by (upstream, replica) (upstream_drained_since_seconds)",
    ]),
  ],
  engines: [
    panel("Attempts", "reqps", ["{{upstream}} {{outcome}}", rate("upstream_attempts_total", "upstream, outcome")]),
    panel("Ends in unknown words", "reqps", ["{{upstream}}", rate("upstream_unknown_reasons_total", "upstream")]),
    panel("Stray answers", "reqps", ["{{upstream}}", rate("upstream_stray_answer_total", "upstream")]),
    panel("Not sent as written", "reqps", ["{{upstream}} {{loss}}", rate("upstream_losses_total", "upstream, loss")]),
    panel("Share of failed attempts", "percentunit", [
      "{{upstream}}",
      // As above, for each engine.
      '(sum by (upstream) (rate(upstream_attempts_total{outcome!~"answered|abandoned|rejected|too_long"}[5m])) or 0 * sum by (upstream) (rate(upstream_attempts_total[5m]))) / (sum by (upstream) (rate(upstream_attempts_total[5m])) > 0) or 0 * sum by (upstream) (rate(upstream_attempts_total[5m]))',
    ]),
    panel("Routes by state", "short", ["{{upstream}} {{state}}", "sum by (upstream, state) (upstream_routes)"]),
    panel("Models without a healthy route", "short", [
      "{{model}}",
      'count by (model) (upstream_routes) unless on (model) (sum by (model) (upstream_routes{state=~"closed|crowded"}) > 0)',
    ]),
    panel("Requests in flight", "short", ["{{upstream}}", "sum by (upstream) (upstream_requests_in_flight)"]),
    panel(
      "One limit for all nodes",
      "short",
      ["slots {{upstream}}", "sum by (upstream) (upstream_slots)"],
      ["apart {{upstream}}", "sum by (upstream) (upstream_slots_apart)"],
    ),
    panel("Tokens in flight", "short", ["{{upstream}}", "sum by (upstream) (upstream_tokens_in_flight)"]),
    panel("Time to first part by upstream", "s", ...slow("upstream_time_to_first_part_seconds", "upstream")),
    panel("Tokens a second", "short", ["{{upstream}} {{class}}", rate("upstream_tokens_total", "upstream, class")]),
    panel("Tokens of attempts in vain", "short", [
      "{{upstream}} {{outcome}}",
      rate("upstream_uncharged_tokens_total", "upstream, outcome"),
    ]),
    panel("Waiting for room", "short", ["{{upstream}}", "sum by (upstream) (upstream_queue_length)"]),
    panel("Wait for room", "s", ...slow("upstream_queue_wait_seconds", "outcome")),
    panel("Addresses", "short", ["{{upstream}}", "max by (upstream) (upstream_addresses)"]),
    panel("Resolutions with a problem", "reqps", [
      "{{upstream}} {{outcome}}",
      rate("upstream_resolutions_total", "upstream, outcome", '{outcome!="answered"}'),
    ]),
    panel("Attempts by replica", "reqps", [
      "{{upstream}} {{replica}} {{outcome}}",
      rate("upstream_replica_attempts_total", "upstream, replica, outcome"),
    ]),
    panel("Replicas by state", "short", [
      "{{upstream}} {{replica}} {{state}}",
      "sum by (upstream, replica, state) (upstream_replica_routes)",
    ]),
    panel("Requests in flight by replica", "short", [
      "{{upstream}} {{replica}}",
      "sum by (upstream, replica) (upstream_replica_requests_in_flight)",
    ]),
    panel("Duration by model", "s", ...slow("inference_duration_seconds", "model")),
    panel("Outcomes", "reqps", ["{{model}} {{outcome}}", rate("inference_requests_total", "model, outcome")]),
    panel("Reports not believed", "reqps", [
      "{{upstream}} {{half}} {{kind}}",
      rate("usage_reports_rejected_total", "upstream, half, kind"),
    ]),
    panel("Reported ÷ counted", "short", ["{{model}} {{statistic}}", "usage_report_divergence"]),
  ],
  usage: [
    panel("Tokens", "short", ["{{class}}", rate("inference_tokens_total", "class")]),
    panel("Tokens by model", "short", ["{{model}}", rate("inference_tokens_total", "model")]),
    panel("Reasoning", "percentunit", [
      "{{model}}",
      'sum by (model) (rate(inference_reasoning_tokens_total[5m])) / sum by (model) (rate(inference_tokens_total{class="output"}[5m]))',
    ]),
    panel("Input from caches", "percentunit", [
      "{{model}}",
      'sum by (model) (rate(inference_tokens_total{class="cached_input"}[5m])) / sum by (model) (rate(inference_tokens_total{class!="output"}[5m]))',
    ]),
    panel("Cost per second", "short", ["{{class}}", rate("usage_cost_total", "class")]),
    panel("Decisions", "reqps", ["{{decision}} {{reason}}", rate("admission_decisions_total", "decision, reason")]),
    panel("Largest organizations", "short", ["{{organization}}", "sum by (organization) (usage_organization_cost)"]),
    panel("Their requests in an hour", "short", [
      "{{organization}}",
      "sum by (organization) (usage_organization_requests)",
    ]),
    panel("Near a limit", "short", [
      "{{subject}} {{percent}} %",
      'max by (subject, percent) (usage_subjects_near_limit{percent!="50"})',
    ]),
    panel("Holds", "short", ["holds", "sum(usage_holds)"], ["waiting", "sum(usage_settlement_waiting)"]),
    panel(
      "Recovered",
      "short",
      ["{{instance}}", "increase(usage_recovered_total[1h])"],
      ["{{instance}} settled late", "increase(usage_settled_late_total[1h])"],
    ),
    panel("Receipts lost", "short", ["{{instance}}", "increase(usage_receipts_lost_total[1h])"]),
    panel("Books", "short", ["mismatch", "max(usage_ledger_mismatch)"], ["seals behind", "max(usage_seals_behind)"]),
    panel("Authentication failures", "reqps", ["{{code}}", rate("authentication_failures_total", "code")]),
  ],
  stores: [
    panel("Statement latency", "s", ...slow("store_statement_duration_seconds", "store")),
    panel("Statements", "reqps", ["{{store}}", rate("store_statement_duration_seconds_count", "store")]),
    panel("Failures", "reqps", ["{{store}} {{fault}}", rate("store_statement_failures_total", "store, fault")]),
    panel(
      "Connections",
      "short",
      ["{{instance}} {{store}} {{state}}", "store_connections"],
      ["{{instance}} {{store}} waiting", "store_connection_waiters"],
    ),
    panel(
      "Opened and lost",
      "short",
      ["{{store}} opened", "sum by (store) (increase(store_connections_opened_total[5m]))"],
      ["{{store}} lost", "sum by (store) (increase(store_connections_lost_total[5m]))"],
    ),
    panel("Wait for a grant", "s", ...slow("admission_grant_wait_seconds", "answer")),
    panel("Batch", "s", ...slow("admission_batch_duration_seconds")),
    panel("Wait for locks", "s", ...slow("admission_batch_lock_wait_seconds")),
    panel("Commands in a batch", "short", ...slow("admission_batch_commands")),
    panel("Failed batches", "reqps", ["{{instance}}", "rate(admission_batch_failures_total[5m])"]),
    panel("Revocations known after", "s", ...slow("key_revocation_propagation_seconds")),
    panel("Timeline", "short", ["{{instance}}", "database_timeline"]),
    panel("Transactions since the oldest snapshot", "short", ["{{instance}}", "database_oldest_snapshot_transactions"]),
    panel("Dead rows", "short", ["{{instance}}", "database_dead_rows"]),
    panel("Transactions since the last freeze", "short", ["{{instance}}", "database_unfrozen_transactions"]),
    panel("Months with a partition", "short", ["{{instance}}", "usage_partitions_ahead"]),
  ],
};

const columns = 2;
const width = 12;
const height = 8;

/** As Grafana imports it; it asks for the data source. */
export function grafanaJson(name: string, panels: readonly Panel[]): string {
  const datasource = { type: "prometheus", uid: "$" + "{datasource}" };
  const dashboard = {
    uid: `sluice-${name}`,
    title: `Sluice: ${name}`,
    tags: ["sluice"],
    timezone: "browser",
    schemaVersion: 39,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    templating: { list: [{ name: "datasource", type: "datasource", query: "prometheus", label: "Data source" }] },
    panels: panels.map(({ title, unit, queries }, at) => ({
      id: at + 1,
      type: "timeseries",
      title,
      datasource,
      gridPos: { x: (at % columns) * width, y: Math.floor(at / columns) * height, w: width, h: height },
      fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
      targets: queries.map(([legendFormat, expr], number) => ({
        refId: String.fromCharCode(65 + number),
        datasource,
        expr,
        legendFormat,
        exemplar: expr.includes("_bucket"),
      })),
    })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}
