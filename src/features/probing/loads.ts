/** Reads the load of engines at intervals, if a setting asks for it: docs/routing.md, Sessions stay at home. */
import { dialects } from "../../core/protocol/dialects.ts";
import type { Health } from "../../core/routing/health.ts";
import { type Clock, type Repeating, repeating } from "../../core/time/clock.ts";
import { readAtMost } from "../../core/upstream/body.ts";
import type { Client } from "../../core/upstream/http1/client.ts";
import { endpointOf, type LoadReading, type Upstream } from "../../core/upstream/target.ts";
import { asked } from "./asked.ts";
import { type EngineLoad, engineLoadOf, isCrowded } from "./engine-load.ts";

interface LoadParts {
  client: Pick<Client, "get">;
  health: Pick<Health, "crowded">;
  /** The upstreams in force. */
  upstreams(): readonly Upstream[];
  now_ms(): number;
  clock?: Pick<Clock, "after">;
}

const answer_ms_max = 2_000;
const answer_bytes_max = 4 * 1024 * 1024;
/** How often the list of engines is searched for those whose load is due to be read. */
const tick_ms = 100;
const idle_ms = 1_000;

export function loads({ client, health, upstreams, now_ms, clock }: LoadParts): Repeating {
  const next_ms = new Map<string, number>();

  function look(): void {
    const due = new Map(
      upstreams().flatMap((one) => (one.load && one.address !== null ? [[endpointOf(one), one] as const] : [])),
    );
    for (const endpoint of next_ms.keys()) {
      if (due.has(endpoint)) continue;
      next_ms.delete(endpoint);
      health.crowded(endpoint, false);
    }
    for (const [endpoint, upstream] of due) {
      if ((next_ms.get(endpoint) ?? 0) > now_ms() + tick_ms / 2) continue;
      // The time of the next reading is set when this one has ended.
      next_ms.set(endpoint, Number.POSITIVE_INFINITY);
      void ask(upstream, upstream.load!);
    }
  }

  async function ask(upstream: Upstream, reading: LoadReading): Promise<void> {
    const load = await read(client, upstream, reading);
    // A reload may have removed the engine while it was read, or its name may have another address.
    const endpoint = endpointOf(upstream);
    if (!next_ms.has(endpoint)) return;
    // An engine that reports nothing counts as idle. Only its health check decides whether it is healthy.
    health.crowded(endpoint, load !== null && isCrowded(load, reading.waiting_max));
    next_ms.set(endpoint, now_ms() + reading.interval_ms);
  }

  return repeating(async () => look(), { first: 0, every: () => (next_ms.size > 0 ? tick_ms : idle_ms) }, clock);
}

async function read(
  client: LoadParts["client"],
  upstream: Upstream,
  { path }: LoadReading,
): Promise<EngineLoad | null> {
  try {
    const reply = await asked(client, upstream, path, answer_ms_max);
    if (reply.status === 200)
      return engineLoadOf(await readAtMost(reply, answer_bytes_max), (upstream.dialect ?? dialects.generic).load);
    reply.drop();
  } catch {
    // An engine's answer that cannot be read counts as no load.
  }
  return null;
}
