/** Resolves the host names of engines at intervals, if a setting asks for it, and keeps the addresses in force. */

import { type Clock, repeating } from "../../core/time/clock.ts";
import { isOwnName } from "../../core/upstream/http1/address.ts";
import type { Resolving, Upstream } from "../../core/upstream/target.ts";
import { afterAnswer, afterFailure, type Resolution, unresolved, wait_ms } from "./resolution.ts";
import type { Resolve } from "./resolve.ts";

interface NamesParts {
  resolve: Resolve;
  /** The configured upstreams. */
  upstreams(): readonly Upstream[];
  now_ms(): number;
  /** Called after each resolution of a name. */
  resolved(upstream: Upstream, told: Resolved): void;
  clock?: Pick<Clock, "after">;
}

export interface Resolved {
  before: Resolution;
  after: Resolution;
  cause?: unknown;
}

/** How often the list of names is searched for those that are due to be resolved. */
const tick_ms = 100;
const idle_ms = 1_000;
/** How long a start or a reload waits for names to be resolved. */
const prepare_ms_max = 2_000;
/** How long names that a reload has resolved are kept until the configuration comes into force. */
const prepared_ms = 60_000;

interface Name {
  upstream: Upstream;
  state: Resolution;
  next_ms: number;
  asking: Promise<void> | null;
  /** If only a configuration that is not in force yet has the name, the name is kept until this instant. */
  keptUntil_ms: number;
}

export function names({ resolve, upstreams, now_ms, resolved, clock }: NamesParts) {
  const known = new Map<string, Name>();

  function look(): void {
    const now = now_ms();
    const inForce = new Set<string>();
    for (const upstream of upstreams()) {
      if (!upstream.resolve) continue;
      inForce.add(keyOf(upstream));
      const name = nameOf(upstream);
      if (name.next_ms <= now) void begun(name);
    }
    for (const [key, { keptUntil_ms }] of known) if (!inForce.has(key) && keptUntil_ms <= now) known.delete(key);
  }

  function nameOf(upstream: Upstream): Name {
    const key = keyOf(upstream);
    const name = known.get(key) ?? { upstream, state: unresolved, next_ms: 0, asking: null, keptUntil_ms: 0 };
    name.upstream = upstream;
    known.set(key, name);
    return name;
  }

  /** Resolves the name. If it is being resolved already, returns that promise. */
  function begun(name: Name): Promise<void> {
    name.asking ??= ask(name).finally(() => {
      name.asking = null;
    });
    return name.asking;
  }

  async function ask(name: Name): Promise<void> {
    const before = name.state;
    const host = hostOf(name.upstream);
    let ttl_ms: number | null = null;
    let cause: unknown;
    try {
      const answer = await resolve(host, how(name));
      ttl_ms = answer.ttl_ms;
      const { addresses_max } = how(name);
      name.state = afterAnswer(before, answer, { addresses_max, isOwn: isOwnName(host) }, now_ms());
    } catch (thrown) {
      cause = thrown;
      name.state = afterFailure(before);
    }
    name.next_ms = now_ms() + wait_ms(name.state, ttl_ms, how(name).interval_ms);
    // A reload may have removed the name while it was resolved.
    if (known.get(keyOf(name.upstream)) !== name) return;
    resolved(name.upstream, { before, after: name.state, ...(cause === undefined ? {} : { cause }) });
  }

  const ticking = repeating(async () => look(), { first: 0, every: () => (known.size > 0 ? tick_ms : idle_ms) }, clock);
  return {
    /** The addresses in force for a resolved upstream; empty if none is known. */
    addressesOf: (upstream: Upstream): readonly string[] => known.get(keyOf(upstream))?.state.addresses ?? [],
    /** Resolves the names of a new configuration that are not known yet. Waits for them only for a limited time. */
    async prepare(next: readonly Upstream[]): Promise<void> {
      const asking = next.flatMap((upstream) => {
        if (!upstream.resolve || known.get(keyOf(upstream))?.state.addresses.length) return [];
        const name = nameOf(upstream);
        name.keptUntil_ms = now_ms() + prepared_ms;
        return [begun(name)];
      });
      if (asking.length > 0) await Promise.race([Promise.all(asking), Bun.sleep(prepare_ms_max)]);
    },
    stop: ticking.stop,
  };
}

function how({ upstream }: Name): Resolving {
  return upstream.resolve!;
}

export function hostOf({ url }: Pick<Upstream, "url">): string {
  return new URL(url).hostname;
}

/** The key of a name: the settings that decide its addresses. The interval is not one of them. */
function keyOf({ name, url, resolve }: Upstream): string {
  return [name, url, resolve?.family, ...(resolve?.servers ?? [])].join("\n");
}
