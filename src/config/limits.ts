/** Every limit of the service by name, with its unit in the name, its default and the range that it may have. */

import type { UpstreamTimeouts } from "../upstream/target.ts";
import { defaultTimeouts } from "../upstream/target.ts";
import type {
  MeteringSettings,
  MetricsSettings,
  ResponsesSettings,
  ServerSettings,
  ServiceLimits,
} from "./configuration.ts";

export interface Limit {
  default: number;
  minimum: number;
  maximum: number;
  description: string;
}

const day_ms = 86_400_000;

export const serviceLimits: Record<keyof ServiceLimits, Limit> = {
  body_bytes_max: {
    default: 32 * 1024 * 1024,
    minimum: 1024,
    maximum: 1024 * 1024 * 1024,
    description: "The largest request body in bytes, after decompression. Larger ones are answered 413.",
  },
  body_read_ms: {
    default: 60_000,
    minimum: 100,
    maximum: 3_600_000,
    description: "How long a client may take to send its body.",
  },
  body_depth_max: {
    default: 100,
    minimum: 16,
    maximum: 1000,
    description: "How deep objects and arrays of a body may be nested.",
  },
  body_values_max: {
    default: 100_000,
    minimum: 1000,
    maximum: 100_000_000,
    description:
      "How many values a body may hold (each comma and each opening bracket counts), and one more for each 128 bytes of it. Beyond, it is answered 413.",
  },
  body_members_max: {
    default: 60_000,
    minimum: 1000,
    maximum: 100_000_000,
    description:
      "How many members the objects of a body may have together, and one more for each 160 bytes of it. Beyond, it is answered 413.",
  },
  body_names_max: {
    default: 10_000,
    minimum: 100,
    maximum: 100_000_000,
    description:
      "How many different names the members of a body may have, and one more for each 1,024 bytes of it. Beyond, it is answered 413.",
  },
  body_ratio_max: {
    default: 100,
    minimum: 10,
    maximum: 100_000,
    description:
      "How many times its size a compressed body may unpack to, where that is more than 1 MiB. Beyond, it is answered 413.",
  },
  memory_bytes: {
    default: 0,
    minimum: 0,
    maximum: 1024 ** 4,
    description:
      "Above so many resident bytes of the process, new inference is answered 503 overloaded. 0: 85 % of the container's limit, or half of the machine's memory.",
  },
  in_flight_bytes_max: {
    default: 0,
    minimum: 0,
    maximum: 1024 ** 4,
    description:
      "How many bytes of bodies, stored conversations and streams the requests of a node may hold together. 0: a quarter of memory_bytes.",
  },
  key_in_flight_bytes_max: {
    default: 0,
    minimum: 0,
    maximum: 1024 ** 4,
    description:
      "How many of them the requests of one key may hold. 0: an eighth of the node's, and four of the largest bodies at least.",
  },
  failed_authentications_per_minute: {
    default: 300,
    minimum: 1,
    maximum: 1_000_000,
    description:
      "How many requests without a valid key one client address may send a minute. Beyond, keys that the node does not know are answered 429.",
  },
  // Longer than the idle timeout of common balancers, 60 s: the side that sends requests should be the one that closes.
  idle_ms: {
    default: 75_000,
    minimum: 1000,
    maximum: 255_000,
    description: "How long a connection may be silent, and how long a client may take to send a request's head.",
  },
  grant_ms: {
    default: 3000,
    minimum: 10,
    maximum: 60_000,
    description: "How long an admission may take before the request is answered 503 storage_unavailable.",
  },
  first_event_hold_ms: {
    default: 5000,
    minimum: 0,
    maximum: 10_000,
    description:
      "How long the status of a stream is held back for the first part of its answer, so that early failures keep a true status.",
  },
  heartbeat_ms: {
    default: 10_000,
    minimum: 10,
    maximum: 10_000,
    description: "The longest silence on a stream before a heartbeat is written.",
  },
  drain_delay_ms: {
    default: 0,
    minimum: 0,
    maximum: 600_000,
    description:
      "After SIGTERM: how long /readyz says no before new connections are refused, so that a load balancer sees it.",
  },
  drain_ms: {
    default: 25_000,
    minimum: 0,
    maximum: day_ms,
    description:
      "After that: how long running requests may take to finish before they are ended with their protocol's error.",
  },
};

const timeout = (name: keyof UpstreamTimeouts, description: string): Limit => ({
  default: defaultTimeouts[name],
  minimum: 10,
  maximum: day_ms,
  description,
});

export const upstreamTimeouts: Record<keyof UpstreamTimeouts, Limit> = {
  connect_ms: timeout("connect_ms", "How long the name, TCP and TLS may take."),
  first_part_ms: timeout(
    "first_part_ms",
    "From there, how long until the first part of the answer; and 1 s for each 2,000 tokens of input.",
  ),
  first_part_spare_ms: timeout(
    "first_part_spare_ms",
    "The same, where another route of the model stands ready: then that one is asked instead.",
  ),
  idle_ms: timeout("idle_ms", "The longest silence between two parts of an answer."),
  total_ms: timeout("total_ms", "The longest that a whole answer may take, all attempts together."),
};

/** Of engines that say how busy they are. */
export const loadLimits: Record<"interval_ms" | "waiting_max", Limit> = {
  interval_ms: {
    default: 1000,
    minimum: 100,
    maximum: 3_600_000,
    description: "From one reading to the next.",
  },
  waiting_max: {
    default: 4,
    minimum: 0,
    maximum: 1_000_000,
    description: "With more requests that wait in the engine, or 95 % of its cache taken, it is crowded.",
  },
};

/** Of requests that wait for an engine that is full. */
export const queueLimits: Record<"length_max" | "wait_ms_max" | "reserved_percent", Limit> = {
  length_max: {
    default: 1000,
    minimum: 0,
    maximum: 1_000_000,
    description:
      "How many requests may wait for one engine. An organization may take as many places as are still free. Beyond, they are answered 429 capacity_exceeded.",
  },
  wait_ms_max: {
    default: 30_000,
    minimum: 0,
    maximum: 3_600_000,
    description: "How long a request may wait, before it is answered 429 capacity_exceeded.",
  },
  reserved_percent: {
    default: 0,
    minimum: 0,
    maximum: 50,
    description:
      "How much of concurrent_max and tokens_in_flight_max is kept for organizations that have less than that at the engine, so that theirs need not wait. At least one request, unless this is 0.",
  },
};

/** Of names that are resolved anew. */
export const resolveLimits: Record<"interval_ms" | "addresses_max", Limit> = {
  interval_ms: {
    default: 5_000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      "How often the name is resolved anew. Sooner where a DNS server of servers says that its answer holds for less, but not more often than once a second.",
  },
  addresses_max: {
    default: 64,
    minimum: 1,
    maximum: 256,
    description:
      "How many addresses may be asked. If the name has more, the others get no requests, and the log says so.",
  },
};

export const checkLimits: Record<"interval_ms", Limit> = {
  interval_ms: {
    default: 5_000,
    minimum: 100,
    maximum: 3_600_000,
    description: "How often it is asked. It has 5 s to answer.",
  },
};

export const meteringLimits: Record<Exclude<keyof MeteringSettings, "recovery" | "end_revoked">, Limit> = {
  lease_s: {
    default: 60,
    minimum: 0.1,
    maximum: 3600,
    description: "A running request whose node is gone is settled by another this long after its last checkpoint.",
  },
  checkpoint_s: {
    default: 2,
    minimum: 0.02,
    maximum: 600,
    description:
      "How often a running request writes down what it has used. Shorter than the lease: where only a short lease is given, a third of it.",
  },
  sweep_s: {
    default: 5,
    minimum: 0.02,
    maximum: 600,
    description: "How often a node looks for lapsed leases.",
  },
  unstreamed_tokens_max: {
    default: 512,
    minimum: 0,
    maximum: 1_000_000,
    description:
      "A request that does not stream, and whose cap is at most this, is asked of the engine unstreamed. 0: never.",
  },
};

export const responsesLimits: Record<Exclude<keyof ResponsesSettings, "store">, Limit> = {
  kept_days: {
    default: 30,
    minimum: 1,
    maximum: 365,
    description: "How long a response is kept, so that a client can go on from it.",
  },
  organization_bytes_max: {
    default: 1024 * 1024 * 1024,
    minimum: 1024,
    maximum: 1024 ** 4,
    description: "How much an organization's responses may take together, in bytes. The oldest make room.",
  },
};

/** Of the node itself. */
export const serverLimits: Record<keyof Pick<ServerSettings, "warm_up_ms">, Limit> = {
  warm_up_ms: {
    default: 2000,
    minimum: 0,
    maximum: 60_000,
    description:
      "How long a node may take to warm up with requests to itself, of which nothing stays: on Postgres before it is ready, on the embedded database in idle moments. 0: it does not.",
  },
};

export const metricsLimits: Record<keyof MetricsSettings, Limit> = {
  organizations_max: {
    default: 0,
    minimum: 0,
    maximum: 1000,
    description:
      "How many organizations the metrics of usage tell by their ids, the largest of the last hour. Needs a port for the operator.",
  },
};

export const telemetryLimits: Record<"metrics_ms", Limit> = {
  metrics_ms: {
    default: 60_000,
    minimum: 0,
    maximum: 3_600_000,
    description: "How often metrics are sent to the collector. 0: never.",
  },
};

/** The defaults of a table of limits, as settings. */
export function defaultsOf<Name extends string>(limits: Record<Name, Limit>): Record<Name, number> {
  const names = Object.keys(limits) as Name[];
  return Object.fromEntries(names.map((name) => [name, limits[name].default])) as Record<Name, number>;
}
