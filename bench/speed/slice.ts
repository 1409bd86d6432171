// Sends requests of one kind to one target for a short time, and measures responses and costs. Every response is
// checked.

import { closely, spread, steadily } from "../steady.ts";
import { pathOf, tagOf, wrong } from "./asks.ts";
import type { Pool, Reply, Request } from "./client.ts";
import { cpu_us, resident_bytes } from "./process.ts";
import type { Load, Scenario, Slice } from "./scenarios.ts";
import type { Stores } from "./stores.ts";
import type { Target } from "./targets.ts";

/** Sends one request. Null: the target refused it, because the target or its store is overloaded. */
export type Asker = () => Promise<Pick<Reply, "marked_ms" | "gaps_ms" | "total_ms"> | null>;

/** The number of requests to a target, and the number of its responses with status 200. */
export interface Count {
  asked: number;
  answered: number;
}

const probes_a_second = 20;
/** The most requests in flight to a target that does not keep up with the load. */
const running_max = 512;
const refusal_ms = 100;
const blankTag = tagOf(0);

/**
 * Returns a function that sends a request with a new tag at each call, and throws unless the response is correct and
 * has that tag.
 */
export function askerOf(
  target: Target,
  connections: Pool,
  { caller, engine, behaviour, isStreamed, body, cap }: Omit<Scenario, "load" | "rows">,
  count: Count,
): Asker {
  // A target that only passes requests on gets the request that the node would send to the engine after all its
  // decisions: with streaming, if the node would ask for a stream.
  const isAskedStreamed = !target.isAskedWhole && (isStreamed || (!target.translates && cap === null));
  // A target that does not translate needs an engine that speaks the caller's protocol.
  const model = target.modelFor(target.translates ? engine : caller, behaviour);
  const written = body(`Say hello to ${blankTag}.`, { protocol: caller, model, isStreamed: isAskedStreamed, cap });
  const [before = "", after = ""] = written.split(blankTag);
  const headers = {
    ...{ "content-type": "application/json", accept: "*/*" },
    ...target.headers,
    ...(caller === "messages" ? { "anthropic-version": "2023-06-01" } : {}),
  };
  return async () => {
    count.asked += 1;
    const tag = tagOf(count.asked);
    const request: Request = { method: "POST", path: pathOf[caller], headers, body: before + tag + after, mark: tag };
    const reply = await connections.ask(request).catch((cause: unknown) => {
      throw new Error(`${target.name} did not answer request ${count.asked}: ${String(cause)}`);
    });
    if (reply.status === 503 || (target.isOthers && reply.status >= 500)) return null;
    if (reply.status !== 200) throw new Error(`${target.name} answered ${reply.status}: ${reply.body.slice(0, 300)}`);
    const complaint = wrong(reply.body, { protocol: caller, isStreamed: isAskedStreamed, tag, behaviour });
    if (complaint !== null) throw new Error(`${target.name} answered wrongly: ${complaint}`);
    count.answered += 1;
    return reply;
  };
}

export async function sliceOf(
  target: Target,
  asker: Asker,
  scenario: Scenario,
  { connections, stores }: { connections: Pool; stores: Stores },
): Promise<Slice> {
  const marks_ms: number[] = [];
  const latencies_ms: number[] = [];
  const gaps_ms: number[] = [];
  let requests = 0;
  let refused = 0;
  const ask = async () => {
    const reply = await asker();
    if (reply === null) {
      refused += 1;
      // The driver waits after a refusal, as real clients do.
      await Bun.sleep(refusal_ms);
      return;
    }
    requests += 1;
    latencies_ms.push(reply.total_ms);
    if (reply.marked_ms !== null) marks_ms.push(reply.marked_ms);
    for (const gap_ms of reply.gaps_ms) gaps_ms.push(gap_ms);
  };
  const beside = watched(target, scenario.probe, connections);
  try {
    const before = costs(target, stores);
    const leftOut = await loaded(ask, scenario.load);
    const after = costs(target, stores);
    if (requests === 0 && !target.isOthers)
      throw new Error(`${target.name} answered none of ${leftOut + refused} requests`);
    return {
      ...{ requests, tokens: requests * scenario.behaviour.tokens, latencies_ms, marks_ms, gaps_ms },
      ...{ cpu_us: after.own - before.own, postgres_us: after.postgres - before.postgres },
      ...{ redis_us: after.redis - before.redis, leftOut: leftOut + refused },
      ...(await beside.end()),
    };
  } finally {
    await beside.end();
  }
}

const costs = ({ pid }: Target, { postgresPid, redisPid }: Stores) => ({
  ...{ own: cpu_us(pid), postgres: cpu_us(postgresPid), redis: cpu_us(redisPid) },
});

/** Runs the load, and resolves with the number of requests that were left out. */
async function loaded(ask: () => Promise<void>, load: Load): Promise<number> {
  if (load.kind === "steadily") return steadily(ask, { ...load, latencies: [], running_max });
  if (load.kind === "spread") await spread(ask, load);
  else await closely(ask, { ...load, latencies: [] });
  return 0;
}

/** Samples the target's memory, and its response times to the probe. */
function watched({ pid, translates }: Target, probe: string | null, connections: Pool) {
  let ends = false;
  let residentMost_bytes = 0;
  const probes_ms: number[] = [];
  const request: Request = { method: "GET", path: probe ?? "/", headers: {}, body: "", mark: "" };
  const watching = (async () => {
    while (!ends) {
      residentMost_bytes = Math.max(residentMost_bytes, resident_bytes(pid));
      if (probe && translates) probes_ms.push((await connections.ask(request)).total_ms);
      await Bun.sleep(1000 / probes_a_second);
    }
  })();
  return {
    async end() {
      ends = true;
      await watching;
      return { residentMost_bytes, probes_ms };
    },
  };
}
