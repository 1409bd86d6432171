/**
 * The bounds of a node: memory, descriptors, and time. They are made once, and shared by all ports on which the node
 * listens.
 *
 * The client's address: the peer's, or the address that trusted proxies name in the one header that the operator chose.
 * The first hop from the right that is not a trusted proxy counts, because an untrusted one may have written everything
 * further left. If a proxy does not name its client, the address is unknown: access must not depend on the proxy's own
 * address (docs/design/service.md, Client addresses).
 */

import { isIP, isIPv6 } from "node:net";
import { liesIn } from "../auth/network.ts";
import { ItemCache } from "../body/item-cache.ts";
import { MemoryBudget, type Shortage } from "../body/memory.ts";
import { BodyTurns } from "../body/turns.ts";
import { Fault } from "../inference/fault.ts";
import { type Pause, small_bytes } from "../time/turns.ts";
import type { Call } from "./call.ts";
import {
  type Collector,
  type Garbage,
  garbage,
  type Machine,
  type Pressure,
  type PressureLimits,
  pressure,
} from "./garbage.ts";
import type { Observer } from "./observer.ts";
import { type Slowness, slowness, slownessLimits } from "./slowness.ts";
import { Sockets, type SocketsLimits } from "./sockets.ts";

export interface Bounds {
  memory: MemoryBudget;
  pressure: Pressure;
  garbage: Garbage;
  /** The turns that work on large bodies takes, so that it does not delay other requests. */
  turns: BodyTurns;
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

/** Makes the bounds of a node. `othersWait`: whether any request without a large body waits for its answer. */
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
 * is not counted yet. All such messages together may hold half of the memory that requests may.
 */
function socketsLimits(limits: MemorySettings & Pick<BoundsLimits, "websocket_frame_bytes_max">): SocketsLimits {
  const { websocket_frame_bytes_max: frame_bytes_max } = limits;
  if (frame_bytes_max === 0) return { frame_bytes_max, node_max: 0, key_max: 0 };
  const fitting = Math.floor(memoryLimits(limits).node_bytes_max / 2 / frame_bytes_max);
  return { frame_bytes_max, node_max: Math.min(sockets_max, fitting), key_max: socketsOfKey_max };
}

/**
 * The parts of a node that refuse a request if there is no memory for it, or no descriptor for its connection. Each
 * refusal is counted.
 */
interface Needs {
  bounds: Bounds;
  metrics: Pick<Observer, "shed">;
}

/** The memory that a request needs in addition to its body, including the buffers of its streams. */
const request_bytes = 64 * 1024;

/**
 * Reserves the memory of a request with a body of this size. Throws Fault 429 `concurrency_limit_exceeded` if its key's
 * share is used up, 503 `overloaded` if the node's memory is.
 */
export function reserve(dependencies: Needs, call: Call, bytes: number): void {
  refuse(dependencies, call.memory?.growTo(request_bytes + bytes) ?? null);
}

/** Reserves the memory of an engine's answer of this size. Throws as `reserve` does. */
export function reserveAnswer(dependencies: Needs, call: Call, bytes: number): void {
  refuse(dependencies, call.memory?.answerTo(bytes) ?? null);
}

function refuse(dependencies: Needs, shortage: Shortage | null): void {
  if (shortage === null) return;
  dependencies.metrics.shed(shortage);
  throw tooMuch(shortage, dependencies.bounds.memory.limits.key_bytes_max);
}

/**
 * The pauses between the steps of work on this request's body: a large body takes turns with those of other requests.
 */
export function takesTurns({ bounds }: Pick<Needs, "bounds">, call: Call): Pause {
  const announced = Number(call.request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
  const isSmall = announced <= small_bytes && !call.request.headers.has("content-encoding");
  if (!isSmall && call.memory) call.takeTurns(bounds.turns.ofBody(call.memory.keyId));
  return call.pause;
}

/** Frees the memory of a body that is no longer needed, before the request's end. */
export function giveBackBody({ memory }: Call): void {
  memory?.shrinkTo(request_bytes);
}

function tooMuch(shortage: Shortage, key_bytes_max: number): Fault {
  const retryAfterSeconds = shortage === "key" ? 2 : 5;
  if (shortage === "key") {
    return new Fault(
      "concurrency_limit_exceeded",
      `The running requests of this API key would hold more than ${key_bytes_max} bytes together. Wait until some of them have ended.`,
      { retryAfterSeconds },
    );
  }
  return new Fault("overloaded", "The service has no memory left for this request. Please try again.", {
    retryAfterSeconds,
  });
}

/**
 * Throws Fault 503 `overloaded` if hardly a descriptor is left; the connection is then closed. Not called for probes.
 */
export function requireDescriptors({ bounds, metrics }: Needs): void {
  if (!bounds.pressure.descriptorsAreFew()) return;
  metrics.shed("descriptors");
  throw new Fault("overloaded", "The service has too many open connections. Please try again.", {
    retryAfterSeconds: 5,
  });
}

/**
 * Stands for the address of clients whose address is not known: it is in no network, and all of them share one limit.
 */
const unknownAddress = "unknown";

/** The most proxies in a chain that are looked at. */
const hops_max = 32;

type ClientAddress = (peer: string, headers: Pick<Headers, "get">) => string;

interface Forwarding {
  /** Addresses and networks (`10.0.0.0/8`), each valid. */
  trustedProxies: readonly string[];
  /** The name of the header in which trusted proxies name the client, in lower case. */
  clientAddressHeader: string;
}

export function clientAddresses({ trustedProxies, clientAddressHeader }: Forwarding): ClientAddress {
  if (trustedProxies.length === 0) return (peer) => accountable(plain(peer));
  const isProxy = liesIn(trustedProxies);
  const hopIn = clientAddressHeader === "forwarded" ? forwardedFor : plain;
  return (peer, headers) => {
    const address = plain(peer);
    if (isIP(address) === 0 || !isProxy(address)) return accountable(address);
    const hops = fromTheRight(headers.get(clientAddressHeader) ?? "");
    return accountable(firstClient(hops.map(hopIn), isProxy) ?? unknownAddress);
  };
}

/**
 * The first address that is no trusted proxy; if all are proxies, the outermost. Null if there are too many hops, or if
 * an address before the first one cannot be read.
 */
function firstClient(hops: Iterable<string>, isProxy: (address: string) => boolean): string | null {
  let last: string | null = null;
  let count = 0;
  for (const address of hops) {
    count += 1;
    if (isIP(address) === 0 || count > hops_max) return null;
    if (!isProxy(address)) return address;
    last = address;
  }
  return last;
}

/**
 * The elements of a comma-separated list, from the last to the first. Whatever a client wrote, the element after the
 * last comma is the one that the nearest proxy appended.
 */
function* fromTheRight(header: string): Generator<string, void> {
  let end = header.length;
  while (end >= 0) {
    const comma = end === 0 ? -1 : header.lastIndexOf(",", end - 1);
    yield header.slice(comma + 1, end);
    end = comma;
  }
}

/** The address in an element of `Forwarded`, such as `for=192.0.2.60;proto=http` or `for="[2001:db8::17]:4711"`. */
function forwardedFor(element: string): string {
  return plain(/(?:^|;)\s*for\s*=\s*("[^"]*"|[^;]*)/i.exec(element)?.[1] ?? "");
}

const digitsAndDots = /^[\d.]+$/;

/** The address without quotes, brackets, port and zone. An IPv4 address inside an IPv6 address is taken out of it. */
function plain(hop: string): string {
  if (digitsAndDots.test(hop)) return hop;
  const text = hop.trim().replace(/^"|"$/g, "");
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  const address = (bracketed ?? text.replace(/^([\d.]+):\d+$/, "$1")).replace(/%.*$/, "");
  return address.replace(/^::ffff:(?=[\d.]+$)/i, "");
}

export function isLoopback(address: string): boolean {
  const bare = plain(address);
  return bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."));
}

/** The address under which a client is counted: for IPv6 its /64, all of which belongs to one subscriber. */
function accountable(address: string): string {
  if (!address.includes(":") || !isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail ? tail.split(":") : [];
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - front.length - back.length)).fill("0");
  const groups = [...front, ...zeros, ...back].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
