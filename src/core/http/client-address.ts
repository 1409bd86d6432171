/**
 * The client's address: the peer's, or the address that trusted proxies name in the one header that the operator chose.
 * The first hop from the right that is not a trusted proxy counts, because an untrusted one may have written everything
 * further left. If a proxy does not name its client, the address is unknown: access must not depend on the proxy's own
 * (docs/design/service.md, Client addresses).
 */
import { isIP, isIPv6 } from "node:net";
import { liesIn } from "../auth/network.ts";

/**
 * Stands for the address of clients whose address is not known: it is in no network, and all of them share one limit.
 */
const unknownAddress = "unknown";

/** The most proxies in a chain that are looked at. */
const hops_max = 32;

export type ClientAddress = (peer: string, headers: Pick<Headers, "get">) => string;

export interface Forwarding {
  /** Addresses and networks (`10.0.0.0/8`), each valid. */
  trustedProxies: readonly string[];
  /** The name of the header, in lower case. */
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
 * The first address that is no trusted proxy; if all are proxies, the outermost. Null if an address before that cannot
 * be read.
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
 * The elements of a comma-separated list, the last first. Whatever a client wrote, the last comma is the one before the
 * element that the nearest proxy appended.
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
