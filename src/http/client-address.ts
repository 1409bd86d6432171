/**
 * Whose request it is, as an address: the peer's, or what trusted proxies say of the client behind them. Whoever is not
 * trusted may write `forwarded` and `x-forwarded-for` as it likes: from the right, the first hop that is no trusted proxy
 * counts (docs/design/service.md, Client addresses).
 */
import { isIP, isIPv6 } from "node:net";
import { liesIn } from "../auth/network.ts";

/** A header longer than this is no proxy's of ours. */
const header_chars_max = 4096;

export interface ForwardingHeaders {
  get(name: string): string | null;
}

export type ClientAddress = (peer: string, headers: ForwardingHeaders) => string;

/** `trusted`: addresses and networks (`10.0.0.0/8`), each in order. */
export function clientAddresses(trusted: readonly string[]): ClientAddress {
  if (trusted.length === 0) return (peer) => accountable(plain(peer));
  const isProxy = liesIn(trusted);
  return (peer, headers) => accountable(clientOf(plain(peer), headers, isProxy));
}

function clientOf(peer: string, headers: ForwardingHeaders, isProxy: (address: string) => boolean): string {
  if (isIP(peer) === 0 || !isProxy(peer)) return peer;
  const standard = headers.get("forwarded");
  const customary = headers.get("x-forwarded-for");
  const heard = [
    ...(standard === null ? [] : [rightmost(forwardedFor(standard), peer, isProxy)]),
    ...(customary === null ? [] : [rightmost(listed(customary), peer, isProxy)]),
  ];
  // A proxy writes one of them, and the client may have sent the other: where they disagree, neither is believed.
  return heard.length > 0 && new Set(heard).size === 1 ? heard[0]! : peer;
}

/** The first hop from the right that is no proxy; the last one that can be read, where one cannot. */
function rightmost(hops: readonly string[], peer: string, isProxy: (address: string) => boolean): string {
  let last = peer;
  for (const hop of hops.toReversed()) {
    const address = plain(hop);
    if (isIP(address) === 0) return last;
    if (!isProxy(address)) return address;
    last = address;
  }
  return last;
}

function listed(header: string): string[] {
  return header.length > header_chars_max ? [] : header.split(",");
}

/** `for=192.0.2.60;proto=http, for="[2001:db8::17]:4711"` */
function forwardedFor(header: string): string[] {
  return listed(header).map((element) => /(?:^|;)\s*for\s*=\s*("[^"]*"|[^;]*)/i.exec(element)?.[1] ?? "");
}

const digitsAndDots = /^[\d.]+$/;

/** Without quotes, brackets, port and zone; an IPv4 address inside IPv6 as itself. */
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

/** Whom to count it to: of IPv6 the /64, all of which is one subscriber's. */
function accountable(address: string): string {
  if (!address.includes(":") || !isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail ? tail.split(":") : [];
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - front.length - back.length)).fill("0");
  const groups = [...front, ...zeros, ...back].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
