// A fake OpenTelemetry collector: it accepts OTLP over HTTP in JSON, and records spans and metrics.

export interface SpanSeen {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  start_ms: number;
  end_ms: number;
  attributes: Record<string, unknown>;
  events: string[];
  isError: boolean;
}

export interface Point {
  attributes: Record<string, unknown>;
  count: number;
  sum: number;
  bounds: number[];
}

export interface Collector {
  url: string;
  spans: SpanSeen[];
  /** The histogram data points of the latest export. The key is the name of a metric. */
  metrics: Map<string, Point[]>;
  resource(): Record<string, unknown>;
  /** The bodies of all exports, unchanged. */
  text(): string;
  headers: Headers[];
  stop(): Promise<void>;
}

interface Value {
  stringValue?: string;
  intValue?: string | number;
  doubleValue?: number;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
}
type Attributes = { key: string; value: Value }[];

interface SentSpan extends Pick<SpanSeen, "name" | "traceId" | "spanId" | "parentSpanId" | "kind"> {
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attributes;
  events?: { name: string }[];
  status?: { code?: number };
}

/**
 * Starts a collector. `status` is the status of its responses; with any other than 200, the collector records nothing.
 */
export function startCollector(status = 200): Collector {
  const spans: SpanSeen[] = [];
  const metrics = new Map<string, Point[]>();
  const headers: Headers[] = [];
  let resource: Record<string, unknown> = {};
  let text = "";
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      text += body;
      headers.push(request.headers);
      if (status !== 200) return new Response("no", { status });
      if (request.headers.get("content-type") !== "application/json") return new Response("not JSON", { status: 415 });
      const { pathname } = new URL(request.url);
      const sent = JSON.parse(body);
      for (const { resource: of, scopeSpans } of sent.resourceSpans ?? []) {
        resource = read(of.attributes);
        for (const scope of scopeSpans) spans.push(...scope.spans.map(spanOf));
      }
      for (const { scopeMetrics } of sent.resourceMetrics ?? []) {
        for (const scope of scopeMetrics) {
          for (const metric of scope.metrics) metrics.set(metric.name, metric.histogram.dataPoints.map(pointOf));
        }
      }
      return pathname === "/v1/traces" || pathname === "/v1/metrics"
        ? Response.json({ partialSuccess: {} })
        : new Response("not found", { status: 404 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    metrics,
    headers,
    resource: () => resource,
    text: () => text,
    stop: () => server.stop(true),
  };
}

function spanOf(span: SentSpan): SpanSeen {
  const { name, traceId, spanId, parentSpanId, kind, startTimeUnixNano, endTimeUnixNano, status } = span;
  return {
    ...{ name, traceId, spanId, kind },
    ...(parentSpanId ? { parentSpanId } : {}),
    start_ms: Number(startTimeUnixNano) / 1e6,
    end_ms: Number(endTimeUnixNano) / 1e6,
    attributes: read(span.attributes),
    events: (span.events ?? []).map((event) => event.name),
    isError: status?.code === 2,
  };
}

function pointOf(point: { attributes: Attributes; count: string; sum: number; explicitBounds: number[] }): Point {
  const { attributes, count, sum, explicitBounds } = point;
  return { attributes: read(attributes), count: Number(count), sum, bounds: explicitBounds };
}

function read(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain(value: Value): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(plain);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.doubleValue ?? value.boolValue;
}
