/**
 * CONFIG: environment and sluice.yaml → one checked value. Seen by cli and main alone.
 *
 * What an operator decided, as one value. Made once at start and again at each reload; nothing else reads the environment.
 */
import type { ImageSettings } from "../inference/image-url.ts";
import type { Catalog } from "../routing/catalog.ts";
import type { Share } from "../routing/fair-queue.ts";
import type { TelemetrySettings } from "../telemetry/traces.ts";
import type { Upstream } from "../upstream/target.ts";
import type { IdentityFiles, TlsFiles } from "./certificate.ts";

export interface Configuration {
  catalog: Catalog;
  /** Of each plan, where requests wait for an engine. Of this process alone, as the queue is. */
  shares: ReadonlyMap<string, Share>;
  /** Every engine in force; those of the file also where no model is routed to them yet. */
  upstreams: Upstream[];
  metering: MeteringSettings;
  limits: ServiceLimits;
  messages: MessagesSettings;
  responses: ResponsesSettings;
  reload: ReloadSettings;
  log: LogSettings;
  metrics: MetricsSettings;
  /** Null: nothing is sent to a collector. */
  telemetry: TelemetrySettings | null;
  images: ImageSettings;
  /** What units cost in reports; null: no price is set. */
  reports: ReportSettings | null;
  /** Whether notices may be sent to private addresses. */
  webhooks: { allowPrivate: boolean };
  server: ServerSettings;
  storage: StorageSettings;
  /** What an operator should know though nothing is wrong, one sentence each; to be logged at start and at reload. */
  notices: string[];
}

/** docs/design/service.md, What scripts rely on. */
export interface MeteringSettings {
  /** A hold lapses this many seconds after its last checkpoint. */
  lease_s: number;
  checkpoint_s: number;
  /** How often lapsed holds of other nodes are looked for. */
  sweep_s: number;
  /** A non-stream request with at most this cap is asked of the engine unstreamed. */
  unstreamed_tokens_max: number;
  /** What a lapsed hold is charged: its last checkpoint, or the whole of it. */
  recovery: "checkpoint" | "hold";
  /** Whether a revoked key, a suspended organization and one without a plan end the requests that run. */
  end_revoked: boolean;
}

/** Every limit of the doors that an operator sets; defaults and ranges: limits.ts. What the contract fixes stands there. */
export interface ServiceLimits {
  body_bytes_max: number;
  body_read_ms: number;
  body_depth_max: number;
  body_values_max: number;
  body_members_max: number;
  body_names_max: number;
  body_ratio_max: number;
  memory_bytes: number;
  in_flight_bytes_max: number;
  key_in_flight_bytes_max: number;
  failed_authentications_per_minute: number;
  idle_ms: number;
  grant_ms: number;
  first_event_hold_ms: number;
  heartbeat_ms: number;
  drain_delay_ms: number;
  drain_ms: number;
}

/** Settings of the Messages protocol. */
export interface MessagesSettings {
  /** Leave the line that Claude Code puts at the head of its system text, though it defeats every prefix cache. */
  keepBillingLine: boolean;
}

/** What is kept of Responses, so that a client can go on from one. */
export interface ResponsesSettings {
  /** Off: nothing is kept, whatever a request says. */
  store: boolean;
  kept_days: number;
  /** Of each organization's responses together; the oldest make room. */
  organization_bytes_max: number;
}

export interface ReloadSettings {
  /** Whether a reload may take away a plan that organizations are on. */
  force: boolean;
}

export interface LogSettings {
  /** The least severe lines that are written. */
  level: "debug" | "info" | "warn" | "error";
  format: "json" | "logfmt";
}

export interface MetricsSettings {
  /** How many organizations /metrics may tell by name: the largest of the last hour. */
  organizations_max: number;
}

/** `on`: with the certificate of the main port. `proxy`: something in front speaks TLS. `off`: management only from the node itself. */
export type OperatorTls = "off" | "on" | "proxy";

export interface OperatorSettings {
  host: string;
  port: number;
  /** By which names it may be asked, in lower case, besides addresses, `localhost` and `host`; absent: none. */
  names?: string[];
  /** Absent: off. */
  tls?: OperatorTls;
}

export interface ServerSettings {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  /** The operator's own listener (metrics, management), or null: then metrics are on the main port. */
  operator: OperatorSettings | null;
  /** The files of the certificate with which the main port speaks HTTPS; absent: HTTP. */
  tls?: IdentityFiles;
  /** Whether a start may bring an older database up to date. */
  migrates: boolean;
  /** Addresses and networks of the proxies whose word for the client's address is taken. */
  trustedProxies: string[];
  /** The header in which they name it, in lower case. */
  clientAddressHeader: string;
  /** How many processes share the ports (workers.ts). */
  workers: WorkersWanted;
  /** How long it may warm up; 0: it does not. */
  warm_up_ms: number;
}

/** `auto`: as many as the machine, or the container, has cores and memory for. */
export type WorkersWanted = number | "auto";

export interface StorageSettings {
  databaseUrl: string | null;
  redisUrl: string | null;
  /** For a `rediss://` URL; absent: the system's authorities, and no certificate of ours. */
  redisTls?: TlsFiles;
  dataDir: string;
}

export interface ReportSettings {
  /** ISO 4217. */
  currency: string;
  pricePerMillionUnits: number;
  /** Who bills. */
  provider: string;
}
