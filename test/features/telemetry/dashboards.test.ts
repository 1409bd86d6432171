/**
 * Dashboards and alerts use only metrics, labels and label values that exist, and each alert has its runbook and its
 * test.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { dashboards, grafanaJson } from "../../../deploy/dashboards.ts";
import type { MetricRow, MetricTable } from "../../../src/features/telemetry/metric.ts";
import { table } from "../../../src/features/telemetry/table.ts";
import { groupsIn, selectorsIn } from "./promql.ts";

const root = join(import.meta.dir, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Alert {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}
const alerts: Alert[] = parse(read("deploy/prometheus/rules.yaml")).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
);
const queries = Object.entries(dashboards).flatMap(([name, panels]) =>
  panels.flatMap(({ title, queries }) => queries.map(([, query]) => [`${name}: ${title}`, query] as const)),
);
const all = [...queries, ...alerts.map(({ alert, expr }) => [alert, expr] as const)];

/** Labels that Prometheus itself adds when it scrapes, `namespace` in Kubernetes. */
const given = ["job", "instance", "namespace"];

function rowOf(metric: string): MetricRow | undefined {
  const metrics: MetricTable = table;
  const histogram = metrics[metric.replace(/_(bucket|sum|count)$/, "")];
  return metrics[metric] ?? (histogram?.type === "histogram" ? histogram : undefined);
}

/** The mistakes in an expression of a dashboard or an alert. */
function mistakesIn(expression: string): string[] {
  const known = new Set([...given, "le"]);
  const mistakes: string[] = [];
  for (const { metric, matchers } of selectorsIn(expression)) {
    const row = rowOf(metric);
    if (!row && metric !== "up") mistakes.push(`there is no metric ${metric}`);
    const labels = row?.labels ?? {};
    for (const label of Object.keys(labels)) known.add(label);
    for (const { label, operator, value } of matchers) {
      const bound = labels[label];
      if (bound === undefined && !given.includes(label)) mistakes.push(`${metric} has no label ${label}`);
      if (typeof bound !== "object" || value === "") continue;
      const values = operator.includes("~") ? value.split("|") : [value];
      for (const one of values) {
        if (!bound.some((other) => new RegExp(`^(?:${one})$`).test(other))) mistakes.push(`${label} is never ${one}`);
      }
    }
  }
  for (const label of groupsIn(expression)) if (!known.has(label)) mistakes.push(`nothing has the label ${label}`);
  return mistakes;
}

test.each(all)("%s asks for what there is", (_, expression) => {
  expect(selectorsIn(expression).length).toBeGreaterThan(0);
  expect(mistakesIn(expression)).toEqual([]);
});

test.each([
  ["sum(rate(http_request_total[5m]))", ["there is no metric http_request_total"]],
  ['http_requests_total{outcome="x"}', ["http_requests_total has no label outcome"]],
  ['http_shed_total{full=~"node|disk"}', ["full is never disk"]],
  ["sum by (modell) (rate(inference_tokens_total[5m]))", ["nothing has the label modell"]],
  ["rate(http_open_requests_bucket[5m])", ["there is no metric http_open_requests_bucket"]],
])("a mistake is seen: %s", (expression, mistakes) => {
  expect(mistakesIn(expression)).toEqual(mistakes);
});

/** Metrics that vLLM, Prometheus itself and exporters define. */
const shared =
  /^(http_requests_total|http_request_duration_seconds_\w+|process_(resident|cpu|open|max|start)\w+|build_info)$/;

test("what other programs have under the same name is counted for Sluice alone", () => {
  const found = all.flatMap(([where, expression]) =>
    selectorsIn(expression)
      .filter(({ metric }) => shared.test(metric))
      .map(({ metric, matchers }) => ({ where, metric, job: matchers.find(({ label }) => label === "job")?.value })),
  );
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter(({ job }) => job !== "sluice")).toEqual([]);
});

test("a route that is only busy is healthy, as for `sluice fleet`", () => {
  const asked = all.filter(([where]) => /WithoutRoute|without a healthy route/.test(where));
  expect(asked).toHaveLength(2);
  for (const [, expression] of asked) {
    const states = selectorsIn(expression).flatMap(({ matchers }) => matchers.map(({ value }) => value));
    expect(states).toEqual(["closed|crowded"]);
  }
});

test("every metric stands on a dashboard or in an alert, but those that only tell when the process began", () => {
  const asked = new Set(
    all.flatMap(([, expression]) =>
      selectorsIn(expression).map(({ metric }) => metric.replace(/_(bucket|count)$/, "")),
    ),
  );
  const unasked = Object.keys(table).filter((name) => !asked.has(name));
  expect(unasked).toEqual([
    ...["http_memory_in_flight_bytes", "authentication_absent_keys", "authentication_existing_secrets"],
    "process_memory_bytes",
  ]);
});

test("deploy/grafana is what deploy/dashboards.ts says: run scripts/dashboards.ts", () => {
  expect(readdirSync(join(root, "deploy/grafana")).sort()).toEqual(
    Object.keys(dashboards)
      .map((name) => `${name}.json`)
      .sort(),
  );
  for (const [name, panels] of Object.entries(dashboards)) {
    expect(read(`deploy/grafana/${name}.json`)).toBe(grafanaJson(name, panels));
  }
});

describe.each(alerts.map((alert) => [alert.alert, alert] as const))("%s", (name, { annotations, labels, expr }) => {
  test("has a section of the runbook, which it names", () => {
    expect(annotations.runbook).toBe(`docs/operating.md#${name.toLowerCase()}`);
    expect(read("docs/operating.md")).toContain(`\n### ${name}\n`);
    expect(["page", "ticket"]).toContain(labels.severity);
  });

  test("is tried both ways by promtool", () => {
    const cases = parse(read("deploy/prometheus/rules.test.yaml")).tests as {
      alert_rule_test: { alertname: string; exp_alerts: unknown[] }[];
    }[];
    const tried = cases.flatMap(({ alert_rule_test }) => alert_rule_test).filter(({ alertname }) => alertname === name);
    expect([...new Set(tried.map(({ exp_alerts }) => exp_alerts.length))].sort()).toEqual([0, 1]);
  });

  test("looks at each installation by itself, where one Prometheus has several", () => {
    const groupings = [...expr.matchAll(/\b(?:sum|count|min|max|avg) ?(?:by \(([^)]*)\) )?\(/g)].map(
      ([, by]) => by ?? "",
    );
    expect(groupings.filter((by) => !/\bjob, namespace\b|\binstance\b/.test(by))).toEqual([]);
  });
});
