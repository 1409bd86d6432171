/** The service's counters and histograms produce the same text as those of Prometheus' own client library. */
import { afterAll, beforeAll, expect, setSystemTime, test } from "bun:test";
import fc from "fast-check";
import { Counter, Histogram, Registry, type RegistryContentType } from "prom-client";
import type { Format } from "../../../src/core/http/observer.ts";
import type { MetricRow } from "../../../src/features/telemetry/metric.ts";
import { instruments } from "../../../src/features/telemetry/registry.ts";
import { type MetricName, table } from "../../../src/features/telemetry/table.ts";
import { contentTypes, metricsText } from "../../../src/features/telemetry/text.ts";

const counted = ["http_requests_total", "usage_recovered_total"] as const;
const observed = ["http_request_duration_seconds", "upstream_queue_wait_seconds", "admission_batch_commands"] as const;
const told = (Object.keys(table) as MetricName[]).filter((metric) =>
  [...counted, ...observed].includes(metric as never),
);

/** Any label value that a configuration may contain, including those that the text format escapes. */
const name = fc.oneof(fc.constantFrom("", "a", 'a "b"', "a\\b\nc", "ü", "\\n"), fc.string({ maxLength: 8 }));
const labelsOf = {
  http_requests_total: fc.record({
    route: name,
    status: fc.constantFrom("200", "429"),
    code: fc.constantFrom("", "overloaded"),
  }),
  usage_recovered_total: fc.constant({}),
  http_request_duration_seconds: fc.record({ route: name }),
  upstream_queue_wait_seconds: fc.record({ model: name, outcome: fc.constantFrom("served", "left") }),
  admission_batch_commands: fc.constant({}),
};
const amount = fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.double({ min: 0, max: 1e21, noNaN: true }));
const bounds = observed.flatMap((metric) => [...table[metric].buckets]);
const seen = fc.oneof(amount, fc.constantFrom(...bounds), fc.double({ min: -1, max: 0, noNaN: true }));
const counts = counted.map((metric) =>
  fc.record({ metric: fc.constant(metric), labels: labelsOf[metric], by: amount }),
);
const observations = observed.map((metric) =>
  fc.record({
    ...{ metric: fc.constant(metric), labels: labelsOf[metric], value: seen },
    traceId: fc.option(fc.constantFrom("0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"), {
      nil: undefined,
    }),
  }),
);
const events = fc.array(fc.oneof(...counts, ...observations), { maxLength: 60 });
type Event = typeof events extends fc.Arbitrary<(infer One)[]> ? One : never;

beforeAll(() => setSystemTime(new Date("2026-11-23T01:02:03.456Z")));
afterAll(() => void setSystemTime());

test.each(["prometheus", "openmetrics"] as const)("as %s, line for line", async (format) => {
  await fc.assert(
    fc.asyncProperty(events, async (all) => {
      const ours = instruments();
      for (const one of all)
        if ("by" in one) ours.inc(one.metric, one.labels as never, one.by);
        else ours.observe(one.metric, one.labels as never, one.value, one.traceId);
      const ofThese = ours.values().filter(({ name }) => told.includes(name as (typeof told)[number]));
      expect(await metricsText(ofThese, format)).toBe(await theirs(all, format));
    }),
    { numRuns: 300 },
  );
});

function theirs(all: Event[], format: Format): Promise<string> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(contentTypes[format] as RegistryContentType);
  const made = new Map<string, Counter | Histogram>();
  for (const metric of told) {
    const row: MetricRow = table[metric];
    const common = { name: metric, help: row.help, labelNames: Object.keys(row.labels ?? {}), registers: [registry] };
    const enableExemplars = hasExemplars(metric, format);
    const { buckets } = row;
    made.set(
      metric,
      buckets ? new Histogram({ ...common, buckets: [...buckets], enableExemplars }) : new Counter(common),
    );
  }
  for (const one of all) {
    const instrument = made.get(one.metric) as Counter & Histogram;
    if ("by" in one) instrument.inc(one.labels, one.by);
    else if (!hasExemplars(one.metric, format)) instrument.observe(one.labels, one.value);
    else {
      const { labels, value, traceId } = one;
      instrument.observe({ labels, value, exemplarLabels: traceId === undefined ? {} : { trace_id: traceId } });
    }
  }
  return registry.metrics();
}

function hasExemplars(metric: MetricName, format: Format): boolean {
  return format === "openmetrics" && "hasExemplars" in table[metric];
}
