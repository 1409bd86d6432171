/** Every metric's name follows Prometheus' naming rules, and the number of its series is bounded. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { boundOf, type MetricRow, other } from "../../../src/features/telemetry/metric.ts";
import { instruments } from "../../../src/features/telemetry/registry.ts";
import { table, tableShown } from "../../../src/features/telemetry/table.ts";

const rows = Object.entries<MetricRow>(table);

/**
 * The most series that one metric may have on one node, if every value of every label occurs with every other value.
 */
const series_max = 9_000_000;
/** The base units; the name of a metric with a unit must end in one of them. */
const baseUnit = /_(seconds|bytes)$/;

test.each(rows)("%s is named as Prometheus wants it", (name, { type, help, buckets }) => {
  expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)+$/);
  expect(name.endsWith("_total")).toBe(type === "counter");
  expect(name).not.toMatch(/_(count|sum|bucket|ms|milliseconds|minutes|kib|mib|percent)(_total)?$/);
  expect(help).toMatch(/^[A-Z][^\n|]*\.$/);
  expect(buckets !== undefined).toBe(type === "histogram");
  if (/_(duration|wait|delay|time|propagation)(_|$)/.test(name)) expect(name).toMatch(/_seconds(_total)?$/);
  if (/memory/.test(name)) expect(name).toMatch(baseUnit);
});

test.each(rows)("%s has labels that are bounded", (_, { labels = {} }) => {
  let series = 1;
  for (const [label, bound] of Object.entries(labels)) {
    expect(label).toMatch(/^[a-z][a-z_]*$/);
    expect(["le", "quantile", "job", "instance", "key", "key_id", "request_id"]).not.toContain(label);
    if (typeof bound !== "number") expect(new Set(bound).size).toBe(bound.length);
    expect(boundOf(bound)).toBeGreaterThan(0);
    series *= boundOf(bound);
  }
  expect(series).toBeLessThan(series_max);
});

test.each(rows.filter(([, { buckets }]) => buckets))("the buckets of %s ascend", (name, { buckets = [] }) => {
  expect([...buckets].sort((a, b) => a - b)).toEqual([...buckets]);
  // A response may take ten minutes.
  if (/^(http|inference)_.*(duration|first_part)/.test(name)) expect(buckets.at(-1)).toBe(600);
  // The durations of responses and the waits within them use the same buckets, so they can be compared.
  if (/_(duration|wait|first_part)_seconds$/.test(name))
    expect(buckets).toEqual(expect.arrayContaining([0.1, 0.25, 0.5, 1, 2.5, 5, 10]));
});

test("docs/operating.md has the table as it is: run scripts/metrics.ts", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/operating.md"), "utf8");
  expect(page).toContain(`\n${tableShown()}\n`);
});

test("a value beyond its bound is counted as other", async () => {
  const { inc, render } = instruments();
  for (let number = 0; number < 600; number++) {
    inc("upstream_attempts_total", { upstream: `engine-${number}`, outcome: "answered" });
  }
  inc("upstream_attempts_total", { upstream: "engine-1", outcome: "made_up" });
  const text = await render("prometheus");
  const names = [...text.matchAll(/^upstream_attempts_total\{upstream="([^"]+)"/gm)].map(([, name]) => name);
  expect(new Set(names).size).toBe(513);
  expect(text).toContain(`upstream_attempts_total{upstream="${other}",outcome="answered"} 88\n`);
  expect(text).toContain(`upstream_attempts_total{upstream="engine-1",outcome="${other}"} 1\n`);
});

test("a counter never falls", () => {
  const { inc, sum } = instruments();
  inc("usage_recovered_total", {}, 3);
  for (const by of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => inc("usage_recovered_total", {}, by)).toThrow(`usage_recovered_total cannot rise by ${by}`);
  expect(sum("usage_recovered_total")).toBe(3);
});

test("every metric is told from the start, with its type and its help", async () => {
  const text = await instruments().render("prometheus");
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  expect(types.sort()).toEqual(rows.map(([name, { type }]) => `${name} ${type}`).sort());
  expect([...text.matchAll(/^# HELP \w+ \S.+\.$/gm)]).toHaveLength(types.length);
});
