/** Logs changes of the addresses of engines whose host names are resolved at intervals. */
import type { Log } from "../core/http/log.ts";
import type { Upstream } from "../core/upstream/target.ts";
import type { Resolved } from "../features/probing/names.ts";
import type { Problem } from "../features/probing/resolution.ts";

const next: Record<Problem, string> = {
  failed: "see whether its DNS servers answer; the addresses of before stay in use",
  empty: "see whether its engines run; the addresses of before stay in use for 30 s",
  own: "addresses of this machine are not asked: if they are meant, let the url say localhost",
  many: "increase resolve.addresses_max, or the other addresses get no requests",
};

/** Logs a resolution that changed something. A lasting problem is logged once. */
export function logResolved(log: Log, { name: upstream }: Upstream, { before, after, cause }: Resolved): void {
  const added = after.addresses.filter((address) => !before.addresses.includes(address));
  const lost = before.addresses.filter((address) => !after.addresses.includes(address));
  const isWell = after.problem === null && before.problem !== null;
  const addresses = after.addresses.length;
  const { problem } = after;
  const isNews = problem !== before.problem || (addresses === 0 && lost.length > 0);
  if (problem !== null && isNews) {
    const why = cause === undefined ? {} : { cause: String(cause) };
    log.event("warn", "upstream_unresolved", { upstream, problem, addresses, next: next[problem], ...why });
  }
  if (added.length > 0 || lost.length > 0 || isWell)
    log.event("info", "upstream_resolved", { upstream, addresses, added: excerpt(added), lost: excerpt(lost) });
}

const listed_max = 16;

function excerpt(addresses: readonly string[]): readonly string[] {
  if (addresses.length <= listed_max) return addresses;
  return [...addresses.slice(0, listed_max), `and ${addresses.length - listed_max} more`];
}
