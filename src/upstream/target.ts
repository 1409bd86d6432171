import type { UpstreamProtocol } from "./codecs.ts";
import type { TlsSettings } from "./http1/dial.ts";

/** The address and protocol of an engine, by its name in the catalog. None of it ever reaches a client. */
export interface Upstream {
  /** The operator's name for it. */
  name: string;
  /** Base URL, up to and with `/v1`, no trailing slash. */
  url: string;
  /** Set if the name of the URL is resolved anew from time to time: each of its addresses is an engine of its own. */
  resolve?: Resolving;
  /** The address of one of those engines, asked under the URL's name. Null: the name has no known address. */
  address?: string | null;
  protocol: UpstreamProtocol;
  apiKey: string | null;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  /** Whom https trusts, and who we are; the system's authorities and nobody, where left out. */
  tls?: TlsSettings;
  timeouts: UpstreamTimeouts;
  /** Whether each organization has a salt of its own in the engine's prefix cache. */
  isCacheSalted?: boolean;
  /** Names of headers that say for whom a request is, to a scheduler of the operator's. */
  identityHeaders?: { organization?: string; plan?: string };
  /** The requests that this process may have in flight there; absent: no limit. */
  capacity?: Capacity;
  /** Asked from time to time whether it is well. */
  check?: HealthCheck;
  load?: LoadReading;
}

export interface Resolving {
  /** At the latest; sooner where the answer says that it holds for less. */
  interval_ms: number;
  /** The bound of its addresses; further ones are not asked. */
  addresses_max: number;
  family: AddressFamily;
  /** DNS servers: addresses, each with its port where that is not 53. None: as the system resolves names. */
  servers: readonly string[];
}

export const addressFamilies = ["all", "ipv4", "ipv6"] as const;
export type AddressFamily = (typeof addressFamilies)[number];

/** The endpoint of an engine: its URL, and its address if it is one of several. */
export function endpointOf({ url, address }: Pick<Upstream, "url" | "address">): string {
  return address === undefined ? url : `${url} ${address}`;
}

/** Null does not limit. */
export interface Capacity {
  concurrent_max: number | null;
  tokens_in_flight_max: number | null;
  /** The share of both that is reserved for organizations that have less than that there. */
  reserved_percent: number;
  /** How many requests may wait for room. */
  queue_max: number;
  /** And for how long, in milliseconds. */
  queue_ms_max: number;
}

/** The page on which an engine reports its load. */
export interface LoadReading {
  /** From the root of the engine's host. */
  path: string;
  interval_ms: number;
  /** With more requests that wait in it, it is crowded. */
  waiting_max: number;
}

export interface HealthCheck {
  /** From the root of the engine's host. */
  path: string;
  interval_ms: number;
}

export interface UpstreamTimeouts {
  /** The name, TCP and TLS. */
  connect_ms: number;
  /** From there until the first part of an answer; more for a long input. */
  first_part_ms: number;
  /** The same, where another route of the model stands ready to be asked instead. */
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

/** Tokens of input that an engine is given a second for, before its first part. */
const input_tokens_per_s = 2_000;
/** Tokens of an answer that comes whole, for which it is given a second. */
const output_tokens_per_s = 20;

/** How much longer the first part may take, in milliseconds. `wholeTokens`: of an answer that comes whole, else 0. */
export function leeway_ms(inputTokens: number, wholeTokens: number): number {
  return Math.ceil((inputTokens / input_tokens_per_s + wholeTokens / output_tokens_per_s) * 1000);
}
