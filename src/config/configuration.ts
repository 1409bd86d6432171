/** What an operator decided, checked, as one value. Made once at start and again at each reload; nothing else reads the environment. */
import type { Catalog } from "../routing/catalog.ts";
import type { Upstream } from "../upstream/target.ts";

export interface Configuration {
  catalog: Catalog;
  upstreams: Upstream[];
  metering: MeteringSettings;
  limits: ServiceLimits;
  server: ServerSettings;
  storage: StorageSettings;
}

/** decisions.md: what scripts rely on. */
export interface MeteringSettings {
  lease_s: number;
  checkpoint_s: number;
  sweep_s: number;
  unstreamed_tokens_max: number;
  recovery: "checkpoint" | "hold";
}

/** Every limit of the doors, by name, unit and default. */
export interface ServiceLimits {
  body_bytes_max: number;
  body_read_ms: number;
  body_depth_max: number;
  messages_max: number;
  grant_ms: number;
  first_event_hold_ms: number;
  heartbeat_ms: number;
  drain_delay_ms: number;
  drain_ms: number;
}

export interface ServerSettings {
  host: string;
  port: number;
  /** `host:port` of the operator's own listener (metrics), or null: then metrics are on the main port. */
  operator: { host: string; port: number } | null;
}

export interface StorageSettings {
  databaseUrl: string | null;
  redisUrl: string | null;
  dataDir: string;
}
