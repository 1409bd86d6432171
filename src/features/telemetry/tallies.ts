/**
 * Counts how attempts ended at each address of a host name. Only addresses in force are counted, so that the number of
 * counts is bounded.
 */
import { engineIn, engineOf } from "../../core/routing/choose.ts";
import type { AttemptKind } from "../../core/upstream/attempt.ts";
import type { Upstream } from "../../core/upstream/target.ts";

export interface Tally {
  upstream: string;
  replica: string;
  outcome: AttemptKind;
  attempts: number;
}

export function tallies() {
  const known = new Map<string, Tally>();
  return {
    ended(upstream: Upstream, outcome: AttemptKind): void {
      if (!upstream.address) return;
      const key = `${engineOf(upstream)}\n${outcome}`;
      const tally = known.get(key) ?? { upstream: upstream.name, replica: upstream.address, outcome, attempts: 0 };
      tally.attempts += 1;
      known.set(key, tally);
    },
    read: () => [...known.values()],
    retain(engines: ReadonlySet<string>): void {
      for (const key of known.keys()) if (!engines.has(engineIn(key))) known.delete(key);
    },
  };
}
