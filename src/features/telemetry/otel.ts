/**
 * OpenTelemetry: exports traces and metrics by OTLP over HTTP. Names are those of the GenAI conventions at the commit
 * in gen-ai.ts. Nothing is registered globally: two services can run in one process.
 */
import { ROOT_CONTEXT } from "@opentelemetry/api";
import type { ExportResult } from "@opentelemetry/core";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { within } from "../../core/time/cancellation.ts";
import type { Traces } from "../../core/usage/traces.ts";
import { genAiMetrics } from "./gen-ai.ts";
import { parentOf } from "./parent.ts";
import { Spans } from "./spans.ts";
import type { TelemetryParts, TelemetrySettings } from "./traces.ts";

const export_ms_max = 10_000;
const stop_ms_max = 3_000;
/** The most spans that may wait to be sent; further ones are dropped. */
const spans_waiting_max = 4_096;

export function openTelemetry(parts: TelemetryParts): Traces {
  const { settings, version, instanceId } = parts;
  const resource = resourceFromAttributes({
    "service.name": settings.service_name,
    "service.version": version,
    "service.instance.id": instanceId,
  });
  const spans = tracing(parts, resource);
  const meters = settings.metrics_ms > 0 ? metering(parts, resource) : null;
  const tracer = spans.getTracer("sluice", version);
  const measured = meters && genAiMetrics(meters.getMeter("sluice", version));
  return {
    begin: (request) => new Spans(tracer, request, parentOf(request.headers, ROOT_CONTEXT), settings.caller_ids),
    inference: (ended) => measured?.(ended),
    async stop() {
      const stopped = Promise.all([spans.shutdown(), meters?.shutdown()]);
      await within(stopped, stop_ms_max, "the telemetry collector").catch(parts.failed);
    },
  };
}

function tracing({ settings, failed }: TelemetryParts, resource: Resource): TracerProvider {
  const exporter = reporting(new OTLPTraceExporter(target(settings, "/v1/traces")), failed);
  return new TracerProvider({
    resource,
    sampler: samplerOf(settings),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, maxQueueSize: spans_waiting_max, scheduledDelayMillis: 2_000 }),
    ],
  });
}

function samplerOf({ sample_ratio, follow_callers }: TelemetrySettings): ParentBasedSampler {
  const own = new TraceIdRatioBasedSampler(sample_ratio);
  return new ParentBasedSampler({
    root: own,
    remoteParentSampled: follow_callers ? new AlwaysOnSampler() : own,
    remoteParentNotSampled: follow_callers ? new AlwaysOffSampler() : own,
  });
}

function metering({ settings, failed }: TelemetryParts, resource: Resource): MeterProvider {
  const exporter = reporting(new OTLPMetricExporter(target(settings, "/v1/metrics")), failed);
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: settings.metrics_ms,
    exportTimeoutMillis: Math.min(export_ms_max, settings.metrics_ms),
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function target({ endpoint, headers }: TelemetrySettings, path: string) {
  return { url: endpoint.replace(/\/+$/, "") + path, headers, timeoutMillis: export_ms_max };
}

interface Exporter<Batch> {
  export(batch: Batch, done: (result: ExportResult) => void): void;
}

/** An exporter that reports what a collector does not accept, because the SDK drops that silently. */
function reporting<Batch, Kind extends Exporter<Batch>>(
  exporter: Kind & Exporter<Batch>,
  failed: (cause: unknown) => void,
) {
  const send = exporter.export.bind(exporter);
  exporter.export = (batch, done) =>
    send(batch, (result) => {
      if (result.code !== 0) failed(result.error ?? new Error("the collector did not take it"));
      done(result);
    });
  return exporter;
}
