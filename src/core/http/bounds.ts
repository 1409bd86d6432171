/** The bounds of a node: memory, descriptors, and time. They are made once, and passed to its ports. */

import { ItemCache } from "../body/item-cache.ts";
import { MemoryBudget } from "../body/memory.ts";
import { BodyTurns } from "../body/turns.ts";
import { type ClientAddress, clientAddresses, type Forwarding } from "./client-address.ts";
import type { Collector } from "./collector.ts";
import { type Garbage, garbage } from "./garbage.ts";
import { type Machine, type Pressure, type PressureLimits, pressure } from "./pressure.ts";
import { type Slowness, slowness, slownessLimits } from "./slowness.ts";
import { Sockets, type SocketsLimits } from "./sockets.ts";

export interface Bounds {
  memory: MemoryBudget;
  pressure: Pressure;
  garbage: Garbage;
  /** The turns of large bodies. */
  turns: BodyTurns;
  /** The cache of messages and tools of recent requests. */
  items: ItemCache;
  slowness: Slowness;
  clientAddress: ClientAddress;
  sockets: Sockets;
}

interface BoundsLimits extends PressureLimits, Forwarding {
  body_bytes_max: number;
  /**
   * The memory for all requests. 0: a quarter of `memory_bytes`, and at least two whole bodies. A body takes its own
   * size again when it is parsed, decoded and encoded.
   */
  in_flight_bytes_max: number;
  /**
   * The memory for one key's requests. 0: an eighth of the node's, and at least four whole bodies, as far as the node
   * has room for them.
   */
  key_in_flight_bytes_max: number;
  /** The memory of the item cache, at most a 32nd of `memory_bytes`. 0: no item is kept. */
  item_cache_bytes_max: number;
  /** The largest WebSocket message. 0: there are no WebSockets. */
  websocket_frame_bytes_max: number;
}

/** `othersWait`: see `BodyTurns`. */
export function bounds(limits: BoundsLimits, machine: Machine & Collector, othersWait: () => boolean): Bounds {
  const felt = pressure(limits, machine, () => performance.now());
  const collected = garbage(machine);
  return {
    memory: new MemoryBudget(memoryLimits(limits), felt.memoryIsHigh, collected.ended),
    pressure: felt,
    garbage: collected,
    turns: new BodyTurns(othersWait),
    items: new ItemCache(itemCacheBytes(limits), randomSeed()),
    slowness: slowness(slownessLimits, Math.random),
    clientAddress: clientAddresses(limits),
    sockets: new Sockets(socketsLimits(limits)),
  };
}

function itemCacheBytes({ item_cache_bytes_max, memory_bytes }: BoundsLimits): number {
  return Math.min(item_cache_bytes_max, Math.floor(memory_bytes / 32));
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

type MemorySettings = Pick<
  BoundsLimits,
  "memory_bytes" | "body_bytes_max" | "in_flight_bytes_max" | "key_in_flight_bytes_max"
>;

export function memoryLimits(limits: MemorySettings) {
  const { memory_bytes, body_bytes_max, in_flight_bytes_max, key_in_flight_bytes_max } = limits;
  const node_bytes_max = in_flight_bytes_max || Math.max(Math.floor(memory_bytes / 4), 2 * body_bytes_max);
  const ofKey = key_in_flight_bytes_max || Math.max(Math.floor(node_bytes_max / 8), 4 * body_bytes_max);
  return { node_bytes_max, key_bytes_max: Math.min(ofKey, node_bytes_max) };
}

const sockets_max = 2000;
const socketsOfKey_max = 64;

/**
 * The limits of WebSockets. The runtime assembles a message before it hands it over, so each socket may hold one that
 * is not counted yet. All of them together may hold half of what requests may.
 */
function socketsLimits(limits: MemorySettings & Pick<BoundsLimits, "websocket_frame_bytes_max">): SocketsLimits {
  const { websocket_frame_bytes_max: frame_bytes_max } = limits;
  if (frame_bytes_max === 0) return { frame_bytes_max, node_max: 0, key_max: 0 };
  const fitting = Math.floor(memoryLimits(limits).node_bytes_max / 2 / frame_bytes_max);
  return { frame_bytes_max, node_max: Math.min(sockets_max, fitting), key_max: socketsOfKey_max };
}
