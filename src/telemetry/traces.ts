/** What traces are to the rooms that are traced: no word of OpenTelemetry here. */
import type { Ended } from "../usage/run.ts";
import type { RunTrace } from "../usage/trace.ts";

export interface Traces {
  begin(request: TracedRequest): RequestTrace;
  /** For its metrics: a run has ended, traced or not. */
  inference(ended: Ended): void;
  /** Sends what waits, for a few seconds at most. */
  stop(): Promise<void>;
}

export interface TracedRequest {
  id: string;
  method: string;
  /** The path as routed. */
  route: string;
  headers: { get(name: string): string | null };
  /** What the caller says of itself, cut and cleaned. */
  words: Record<string, string | undefined>;
}

export interface RequestTrace extends RunTrace {
  /** A run of this request has ended. */
  answered(ended: Ended): void;
  /** The request's last byte is written. `code`: of its fault. */
  end(status: number, code: string | undefined): void;
}

export interface TelemetrySettings {
  /** Where a collector takes OTLP over HTTP: its base URL. */
  endpoint: string;
  headers: Record<string, string>;
  service_name: string;
  /** The share of requests that is traced, from 0 to 1. */
  sample_ratio: number;
  /** Whether a caller's word that it traces a request, or does not, counts instead. */
  follow_callers: boolean;
  /** Between two exports of metrics. 0: none. */
  metrics_ms: number;
}

export interface TelemetryParts {
  settings: TelemetrySettings;
  version: string;
  /** Of this process among those of the service. */
  instanceId: string;
  /** Told why something could not be sent. */
  failed(cause: unknown): void;
}
