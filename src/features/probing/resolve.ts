/** Resolves a host name to its current addresses, with the system's resolver or the operator's DNS servers. */
import { lookup, Resolver } from "node:dns/promises";
import type { AddressFamily, Resolving } from "../../core/upstream/target.ts";

/** The result of a look-up. `addresses` is empty if the name has none. */
export interface ResolvedAddresses {
  addresses: string[];
  /** How long the answer is valid; null if unknown. */
  ttl_ms: number | null;
  /** The address family whose look-up failed while the other succeeded. */
  failedFamily: Exclude<AddressFamily, "all"> | null;
}

/** Resolves a host name. Throws if the look-up failed: no server answered, or the server reported a failure. */
export type Resolve = (host: string, how: Pick<Resolving, "family" | "servers">) => Promise<ResolvedAddresses>;

export const resolve: Resolve = (host, how) => (how.servers.length > 0 ? asked(host, how) : looked(host, how));

const familyNumbers = { all: 0, ipv4: 4, ipv6: 6 } as const;

/** Resolves a name with the system's hosts file, search domains and servers. The result has no time to live. */
async function looked(host: string, { family }: Parameters<Resolve>[1]): Promise<ResolvedAddresses> {
  try {
    const found = await lookup(host, { all: true, family: familyNumbers[family] });
    return { addresses: found.map(({ address }) => address), ttl_ms: null, failedFamily: null };
  } catch (cause) {
    if (isAbsent(cause)) return { addresses: [], ttl_ms: null, failedFamily: null };
    throw cause;
  }
}

const answer_ms = 2_000;
const tries = 2;

type Family = Exclude<AddressFamily, "all">;

async function asked(host: string, { family, servers }: Parameters<Resolve>[1]): Promise<ResolvedAddresses> {
  // Each look-up gets a new resolver, because a resolver caches an answer for as long as it is valid, even for an hour.
  const resolver = new Resolver({ timeout: answer_ms, tries });
  resolver.setServers([...servers]);
  const families: Family[] = family === "all" ? ["ipv4", "ipv6"] : [family];
  const told = await Promise.allSettled(families.map((one) => recordsOf(resolver, host, one)));
  const records = told.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const failures = told.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length === families.length) throw failures[0];
  return {
    addresses: records.map(({ address }) => address),
    ttl_ms: records.length === 0 ? null : 1000 * Math.min(...records.map(({ ttl }) => ttl)),
    failedFamily: families.find((_, index) => told[index]!.status === "rejected") ?? null,
  };
}

async function recordsOf(resolver: Resolver, host: string, family: Family) {
  try {
    return await (family === "ipv4" ? resolver.resolve4(host, { ttl: true }) : resolver.resolve6(host, { ttl: true }));
  } catch (cause) {
    if (isAbsent(cause)) return [];
    throw cause;
  }
}

/**
 * Whether the error means that the name does not exist or has no address of this family. Such an error is no failure.
 */
function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOTFOUND" || cause.code === "ENODATA");
}
