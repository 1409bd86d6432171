/** Checks engines at intervals, if a setting asks for it: docs/routing.md, Health. */

import type { Health } from "../../core/routing/health.ts";
import { type Clock, repeating } from "../../core/time/clock.ts";
import type { Client } from "../../core/upstream/http1/client.ts";
import { endpointOf, type HealthCheck, type Upstream } from "../../core/upstream/target.ts";
import { asked } from "./asked.ts";

interface CheckParts {
  client: Pick<Client, "get">;
  health: Pick<Health, "checked">;
  /** The upstreams in force. */
  upstreams(): readonly Upstream[];
  now_ms(): number;
  /** Called when an engine counts as up or as down after its checks. */
  turned(upstream: Upstream, isUp: boolean): void;
  clock?: Pick<Clock, "after">;
}

/** An engine gets no more requests after this many failed checks in a row. */
const checks_max = 2;
const answer_ms_max = 5_000;
/** How often the list of engines is searched for those that are due for a check. */
const tick_ms = 100;
const idle_ms = 1_000;

interface Checked {
  upstream: Upstream;
  next_ms: number;
  isAsking: boolean;
  failures: number;
}

export function checks({ client, health, upstreams, now_ms, turned, clock }: CheckParts) {
  const known = new Map<string, Checked>();

  function look(): void {
    const due = new Map(
      upstreams().flatMap((one) => (one.check && one.address !== null ? [[endpointOf(one), one] as const] : [])),
    );
    for (const [endpoint, { failures, upstream }] of known) {
      if (due.has(endpoint)) continue;
      known.delete(endpoint);
      if (failures < checks_max) continue;
      // If the host name no longer has this address, the address counts as up again, and `turned` is not called: no
      // request is sent to the address anyway.
      if (upstream.address === undefined) tell(upstream, true);
      else health.checked(endpoint, true, now_ms());
    }
    for (const [endpoint, upstream] of due) {
      const one = known.get(endpoint) ?? { upstream, next_ms: 0, isAsking: false, failures: 0 };
      known.set(endpoint, one);
      one.upstream = upstream;
      if (!one.isAsking && one.next_ms <= now_ms() + tick_ms / 2) void ask(one, upstream.check!);
    }
  }

  async function ask(one: Checked, check: HealthCheck): Promise<void> {
    one.isAsking = true;
    one.next_ms = now_ms() + check.interval_ms;
    const isUp = await isWell(client, one.upstream, check);
    one.isAsking = false;
    // A reload may have removed the engine while it was checked, or its name may have another address.
    if (known.get(endpointOf(one.upstream)) !== one) return;
    const wasUp = one.failures < checks_max;
    const isAnsweredAgain = isUp && one.failures > 0;
    one.failures = isUp ? 0 : one.failures + 1;
    if (wasUp !== one.failures < checks_max) tell(one.upstream, !wasUp);
    else if (isAnsweredAgain) health.checked(endpointOf(one.upstream), true, now_ms());
  }

  function tell(upstream: Upstream, isUp: boolean): void {
    health.checked(endpointOf(upstream), isUp, now_ms());
    turned(upstream, isUp);
  }

  return repeating(async () => look(), { first: 0, every: () => (known.size > 0 ? tick_ms : idle_ms) }, clock);
}

async function isWell(client: CheckParts["client"], upstream: Upstream, { path }: HealthCheck): Promise<boolean> {
  try {
    const reply = await asked(client, upstream, path, answer_ms_max);
    reply.drop();
    return reply.status >= 200 && reply.status < 300;
  } catch {
    return false;
  }
}
