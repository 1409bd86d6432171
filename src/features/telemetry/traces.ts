/** The interface of traces for the modules that are traced, without OpenTelemetry. */
import type { Ended } from "../../core/usage/run.ts";
import type { RunTrace } from "../../core/usage/trace.ts";

export interface Traces {
  begin(request: TracedRequest): RequestTrace;
  /** Records a run that has ended, traced or not, in the exporter's metrics. */
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
  /** The client's description of itself, shortened and cleaned. */
  words: Record<string, string | undefined>;
}

export interface RequestTrace extends RunTrace {
  /** The caller is known by its key. */
  identified(caller: { organization: string; key: string }): void;
  /** A run of this request has ended. */
  answered(ended: Ended): void;
  /** The request's last byte was written. `code`: that of its fault. */
  end(status: number, code: string | undefined): void;
}

export interface TelemetrySettings {
  /** The base URL of a collector that takes OTLP over HTTP. */
  endpoint: string;
  headers: Record<string, string>;
  service_name: string;
  /** The share of requests that is traced, from 0 to 1. */
  sample_ratio: number;
  /** Whether a caller's own decision about tracing a request is followed instead. */
  follow_callers: boolean;
  /** Whether spans have the ids of the organization, the key and the team of their request. */
  caller_ids: boolean;
  /** The interval between two exports of metrics. 0: none. */
  metrics_ms: number;
}

export interface TelemetryParts {
  settings: TelemetrySettings;
  version: string;
  /** The id of this process among those of the service. */
  instanceId: string;
  /** Called with the reason if something could not be sent. */
  failed(cause: unknown): void;
}
