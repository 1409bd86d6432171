/** The settings of the exporters of traces and metrics. */
export interface TelemetrySettings {
  /** The base URL of a collector that accepts OTLP over HTTP. */
  endpoint: string;
  headers: Record<string, string>;
  service_name: string;
  /** The share of requests that is traced, from 0 to 1. */
  sample_ratio: number;
  /** Whether a caller's own decision about tracing a request overrides the ratio. */
  follow_callers: boolean;
  /** Whether spans contain the ids of the organization, the key and the team of their request. */
  caller_ids: boolean;
  /** The interval between two exports of metrics; 0: none are exported. */
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
