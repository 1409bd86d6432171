/**
 * Decides which addresses of a host name are used, from the answers of name servers: docs/routing.md, Names with
 * several addresses. A failed look-up removes no address; a name without addresses keeps its earlier ones for a while.
 * Pure: a state and an answer give the next state.
 */
import { isOwnAddress } from "../../core/upstream/http1/address.ts";
import type { ResolvedAddresses } from "./resolve.ts";

export interface Resolution {
  addresses: readonly string[];
  problem: Problem | null;
  /** Since when the name has had no address, on the caller's clock; null if it has one. */
  emptySince_ms: number | null;
}

/**
 * The problems of a look-up. `failed`: the look-up failed. `empty`: the name has no address. `own`: the name resolves
 * to this machine, but is not a name of this machine. `many`: the name has more addresses than are used.
 */
export type Problem = "failed" | "empty" | "own" | "many";

export const unresolved: Resolution = { addresses: [], problem: null, emptySince_ms: null };

/**
 * A name that loses all its addresses keeps them this long: its name server may have just started and not know them
 * yet.
 */
export const empty_kept_ms = 30_000;

export interface Rules {
  addresses_max: number;
  /** Whether the name stands for this machine, such as `localhost`. */
  isOwn: boolean;
}

export function afterAnswer(before: Resolution, answer: ResolvedAddresses, rules: Rules, now_ms: number): Resolution {
  const found = foundIn(before, answer);
  if (found.length === 0 && answer.failedFamily !== null) return afterFailure(before);
  const allowed = rules.isOwn ? found : found.filter((address) => !isOwnAddress(address));
  const isRefused = allowed.length < found.length;
  if (allowed.length === 0) {
    const emptySince_ms = before.emptySince_ms ?? now_ms;
    const isKept = now_ms - emptySince_ms < empty_kept_ms;
    return { addresses: isKept ? before.addresses : [], problem: isRefused ? "own" : "empty", emptySince_ms };
  }
  const isCut = allowed.length > rules.addresses_max;
  return {
    // The first addresses in sorted order, so that all nodes use the same ones, however the name server shuffles them.
    addresses: allowed.slice(0, rules.addresses_max),
    problem: isCut ? "many" : isRefused ? "own" : answer.failedFamily !== null ? "failed" : null,
    emptySince_ms: null,
  };
}

export function afterFailure(before: Resolution): Resolution {
  return { ...before, problem: "failed" };
}

/**
 * The addresses of the answer, each once and in sorted order. If the look-up of one family (IPv4 or IPv6) failed, the
 * earlier addresses of that family are added.
 */
function foundIn(before: Resolution, { addresses, failedFamily }: ResolvedAddresses): string[] {
  const kept = before.addresses.filter((address) => (address.includes(":") ? "ipv6" : "ipv4") === failedFamily);
  return [...new Set([...addresses, ...kept])].sort();
}

/** The least wait between two resolutions, however short an answer is valid. */
const wait_ms_min = 1_000;

/** The wait until the name is resolved again, which is shorter if no address is known. */
export function wait_ms({ addresses }: Resolution, ttl_ms: number | null, interval_ms: number): number {
  const least_ms = Math.min(wait_ms_min, interval_ms);
  if (addresses.length === 0) return least_ms;
  return Math.max(least_ms, Math.min(interval_ms, ttl_ms ?? interval_ms));
}
