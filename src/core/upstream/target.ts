import type { Dialect } from "../protocol/dialect.ts";
import type { UpstreamProtocol } from "./codecs.ts";
import type { Reuse } from "./http1/client.ts";
import type { TlsSettings } from "./http1/dial.ts";

/** The address and protocol of an engine that the catalog names. Clients never see any of it. */
export interface Upstream {
  /** The name that the operator gave the engine. */
  name: string;
  /** The base URL, up to and including `/v1`, without a trailing slash. */
  url: string;
  /** Set if the host name in the URL is resolved at intervals. Each of its addresses is then an engine of its own. */
  resolve?: Resolving;
  /**
   * One address of the URL's host name, with `resolve`. Requests to it still name the URL's host. Null: no address of
   * the name is known.
   */
  address?: string | null;
  protocol: UpstreamProtocol;
  /** How the engine differs from others of its protocol. Absent: it has the generic dialect. */
  dialect?: Dialect;
  apiKey: string | null;
  headers?: Readonly<Record<string, string>>;
  /** The authorities and the client certificate for https. Absent: the system's authorities and no certificate. */
  tls?: TlsSettings;
  timeouts: UpstreamTimeouts;
  /** Whether each organization has its own salt in the engine's prefix cache, so that they don't share entries. */
  isCacheSalted?: boolean;
  /**
   * Whose requests may follow the first one on a connection to the engine: those of the same organization, of any or of
   * none; absent: of any.
   */
  reuse?: Reuse;
  /** The names of headers that tell the operator's scheduler whose request it is. */
  identityHeaders?: { organization?: string; plan?: string; session?: string; priority?: string };
  /**
   * The request field that makes the engine report its token counts on every chunk of a stream; absent: none is sent.
   */
  runningUsage?: "usage" | "timings";
  /**
   * The key is the name of a plan, the value is the priority of its requests, in the engine's numbers. Requests of
   * other plans have no priority.
   */
  priorities?: Readonly<Record<string, number>>;
  /** The limits on the requests in flight at the engine; absent: no limit. */
  capacity?: Capacity;
  check?: HealthCheck;
  load?: LoadReading;
}

export interface Resolving {
  /** The longest time between two look-ups. The time is shorter if the DNS answer has a lower TTL. */
  interval_ms: number;
  addresses_max: number;
  family: AddressFamily;
  /** Addresses of DNS servers, each with its port if that is not 53. Empty: the system resolves names. */
  servers: readonly string[];
}

export const addressFamilies = ["all", "ipv4", "ipv6"] as const;
export type AddressFamily = (typeof addressFamilies)[number];

/** The identity of an engine's endpoint: its URL, and its address if it is one of several. */
export function endpointOf({ url, address }: Pick<Upstream, "url" | "address">): string {
  return address === undefined ? url : `${url} ${address}`;
}

/** The limits on what is in flight at an engine. Null means no limit. */
export interface Capacity {
  concurrent_max: number | null;
  /** Whether all processes of the fleet share the limits, instead of each having them. */
  isShared?: boolean;
  tokens_in_flight_max: number | null;
  /**
   * The percentage of both limits that is reserved for organizations whose requests in flight use less than this
   * percentage of them.
   */
  reserved_percent: number;
  /** The most requests that may wait for the engine. */
  queue_max: number;
  queue_ms_max: number;
}

/** How an engine's load is read, from its metrics page. */
export interface LoadReading {
  /** The path of the metrics page, from the root of the engine's host. */
  path: string;
  interval_ms: number;
  /** An engine with more waiting requests than this is crowded. */
  waiting_max: number;
}

export interface HealthCheck {
  /** The path that the check requests, from the root of the engine's host. */
  path: string;
  interval_ms: number;
}

export interface UpstreamTimeouts {
  /** The time for name resolution, TCP and TLS. */
  connect_ms: number;
  /** The time from the connection until the first part of an answer; a long input gets more. */
  first_part_ms: number;
  /** The same as `first_part_ms`, for the case that another route of the model could get the request instead. */
  first_part_spare_ms: number;
  /** The longest time between two parts of an answer; longer in the cases of `silences`. */
  idle_ms: number;
  /** The time for the whole answer, with all attempts together. */
  total_ms: number;
}

export const defaultTimeouts: UpstreamTimeouts = {
  connect_ms: 5_000,
  first_part_ms: 120_000,
  first_part_spare_ms: 12_000,
  idle_ms: 30_000,
  total_ms: 3_600_000,
};

/** The number of input tokens for which an engine gets one more second until its first part. */
const input_tokens_per_s = 2_000;
/** The number of tokens of an unstreamed answer for which an engine gets one more second. */
const output_tokens_per_s = 20;

/** The factor of `idle_ms` for a request with tools: some engines hold a call back until all of it is written. */
const heldBack_factor = 4;
/** The factor of `idle_ms` for an engine that sends signs of life, which a proxy may send for an engine that is dead. */
const alive_factor = 10;

/** The longest times between two parts of an answer, without and with signs of life. */
export function silences({ idle_ms }: UpstreamTimeouts, hasTools: boolean): { idle_ms: number; alive_ms: number } {
  return { idle_ms: hasTools ? heldBack_factor * idle_ms : idle_ms, alive_ms: alive_factor * idle_ms };
}

/**
 * How much more time the first part gets, in milliseconds. `wholeTokens`: the tokens of an unstreamed answer, else 0.
 */
export function leeway_ms(inputTokens: number, wholeTokens: number): number {
  return Math.ceil((inputTokens / input_tokens_per_s + wholeTokens / output_tokens_per_s) * 1000);
}
