import type { Dialect } from "../protocol/dialect.ts";
import type { UpstreamProtocol } from "./codecs.ts";
import type { Reuse } from "./http1/client.ts";
import type { TlsSettings } from "./http1/dial.ts";

/** The address and protocol of an engine, by its name in the catalog. Clients never see any of it. */
export interface Upstream {
  /** The operator's name for it. */
  name: string;
  /** The base URL, up to and including `/v1`, without a trailing slash. */
  url: string;
  /**
   * Set if the name in the URL is resolved again from time to time. Each of its addresses is then an engine of its own.
   */
  resolve?: Resolving;
  /** The address of one of those engines, asked under the URL's name. Null: the name has no known address. */
  address?: string | null;
  protocol: UpstreamProtocol;
  /** How the engine differs from others of its protocol. Absent: as a generic one. */
  dialect?: Dialect;
  apiKey: string | null;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  /** The authorities and the client certificate for https. The system's authorities and no certificate by default. */
  tls?: TlsSettings;
  timeouts: UpstreamTimeouts;
  /** Whether each organization has a salt of its own in the engine's prefix cache. */
  isCacheSalted?: boolean;
  /** The requests that a connection to the engine may carry after its first one: all, if absent. */
  reuse?: Reuse;
  /** The names of headers that tell the operator's scheduler for whom a request is. */
  identityHeaders?: { organization?: string; plan?: string; session?: string; priority?: string };
  /** How the engine is asked for its counts on every chunk of a stream. */
  runningUsage?: "usage" | "timings";
  /** The priority of requests of each plan, as the engine counts it. Requests of other plans have none. */
  priorities?: Readonly<Record<string, number>>;
  /** The requests that may be in flight at the engine; unlimited if absent. */
  capacity?: Capacity;
  /** The health check that is made from time to time. */
  check?: HealthCheck;
  load?: LoadReading;
}

export interface Resolving {
  /** The longest time until the next look-up. It is made sooner if the answer is valid for less. */
  interval_ms: number;
  /** The most addresses that are used. */
  addresses_max: number;
  family: AddressFamily;
  /** DNS servers: addresses, each with its port if that is not 53. If there are none, the system resolves names. */
  servers: readonly string[];
}

export const addressFamilies = ["all", "ipv4", "ipv6"] as const;
export type AddressFamily = (typeof addressFamilies)[number];

/** The endpoint of an engine: its URL, and its address if it is one of several. */
export function endpointOf({ url, address }: Pick<Upstream, "url" | "address">): string {
  return address === undefined ? url : `${url} ${address}`;
}

/** Null means no limit. */
export interface Capacity {
  concurrent_max: number | null;
  /** Whether the processes of the fleet have it together, and not each. */
  isShared?: boolean;
  tokens_in_flight_max: number | null;
  /** The share of both that is reserved for organizations that have less than that in flight. */
  reserved_percent: number;
  /** How many requests may wait for room. */
  queue_max: number;
  /** How long they may wait, in milliseconds. */
  queue_ms_max: number;
}

/** The page on which an engine reports its load. */
export interface LoadReading {
  /** A path from the root of the engine's host. */
  path: string;
  interval_ms: number;
  /** An engine with more waiting requests than this is crowded. */
  waiting_max: number;
}

export interface HealthCheck {
  /** A path from the root of the engine's host. */
  path: string;
  interval_ms: number;
}

export interface UpstreamTimeouts {
  /** The name, TCP and TLS. */
  connect_ms: number;
  /** From the connection until the first part of an answer; longer for a long input. */
  first_part_ms: number;
  /** The same if another route of the model stands ready to be asked instead. */
  first_part_spare_ms: number;
  /** Between two parts of an answer. */
  idle_ms: number;
  /** The whole answer, all attempts together. */
  total_ms: number;
}

export const defaultTimeouts: UpstreamTimeouts = {
  connect_ms: 5_000,
  first_part_ms: 120_000,
  first_part_spare_ms: 12_000,
  idle_ms: 30_000,
  total_ms: 3_600_000,
};

/** The tokens of input for which an engine is given one second more, before its first part. */
const input_tokens_per_s = 2_000;
/** The tokens of an unstreamed answer for which an engine is given one second more. */
const output_tokens_per_s = 20;

/**
 * How much longer the first part may take, in milliseconds. `wholeTokens`: the tokens of an unstreamed answer, else 0.
 */
export function leeway_ms(inputTokens: number, wholeTokens: number): number {
  return Math.ceil((inputTokens / input_tokens_per_s + wholeTokens / output_tokens_per_s) * 1000);
}
