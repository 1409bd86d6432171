/**
 * Warming up (docs/design/runtime.md, Warming up): code runs slowly until it has run often and is compiled. So a node
 * sends itself requests before clients do.
 */
import type { Log } from "../core/http/log.ts";
import type { WarmNode } from "./warm-node.ts";

export interface WarmUpParts {
  warm_up_ms: number;
  start(): WarmNode;
  log: Pick<Log, "event">;
  stopped: AbortSignal;
}

/** The most requests of a warm-up: by then, code is compiled, and another second would gain little. */
const requests_max = 1000;
const concurrent = 16;

/** Warms up before the node is ready. Resolves when it is warm, its time is over, or it is asked to stop; never rejects. */
export async function warmUp({ warm_up_ms, start, log, stopped }: WarmUpParts): Promise<void> {
  if (warm_up_ms === 0 || stopped.aborted) return;
  const began_ms = performance.now();
  const elapsed_ms = () => performance.now() - began_ms;
  const over = new AbortController();
  const late = setTimeout(() => over.abort(), warm_up_ms);
  const signal = AbortSignal.any([stopped, over.signal]);
  const ended = aborted(signal);
  let requests = 0;

  async function served(): Promise<void> {
    await using node = start();
    // No request is begun after 85 % of the time for warming up, so that running ones can end.
    const goesOn = () => elapsed_ms() < warm_up_ms * 0.85;
    requests = await node.serve({ requests: requests_max, concurrent, goesOn, signal });
  }

  try {
    await Promise.race([served(), ended]);
    if (!stopped.aborted) log.event("info", "warmed_up", { requests, ms: Math.round(elapsed_ms()) });
  } catch (cause) {
    log.event("warn", "warm_up_failed", { cause: String(cause) });
  } finally {
    clearTimeout(late);
    over.abort();
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

/** The most requests of a warm-up with the embedded database, where each takes longer, and which serves few clients. */
const idle_requests_max = 100;
/**
 * The number of requests that the warm-up sends at once. A client's request that arrives meanwhile waits until they
 * end.
 */
const slice_requests = 8;
/** The node is idle if no request has come for `idle_ms` and its event loop is less than `late_ms_max` late. */
const idle_ms = 20;
const late_ms_max = 10;
/** How long the node must be idle before the warm-up begins or, if interrupted, goes on. */
const busy_ms = 250;

/**
 * Warms up while the node serves, when it is idle. Resolves when it is warm, its time is over, or it is asked to stop;
 * never rejects.
 */
export async function warmUpInIdleMoments(parts: WarmUpParts, isIdle: () => boolean): Promise<void> {
  const { warm_up_ms, start, log, stopped } = parts;
  let [requests, worked_ms] = [0, 0];
  const goesOn = () => isIdle() && !stopped.aborted;
  const ended = aborted(stopped);
  const pause = (ms: number) => Promise.race([Bun.sleep(ms), ended]);
  const isWarm = () => requests >= idle_requests_max || worked_ms >= warm_up_ms;

  /** Warms up until the serving node is no longer idle, and then disposes of the node for warming up. */
  async function whileIdle(): Promise<void> {
    await using node = start();
    const slice = { requests: slice_requests, concurrent: slice_requests, goesOn, signal: stopped };
    while (!isWarm() && (await idleFor(idle_ms, goesOn, pause))) {
      const began_ms = performance.now();
      requests += await node.serve(slice);
      worked_ms += performance.now() - began_ms;
    }
  }

  try {
    while (!isWarm() && !stopped.aborted) if (await idleFor(busy_ms, goesOn, pause)) await whileIdle();
    if (worked_ms > 0 && !stopped.aborted) log.event("info", "warmed_up", { requests, ms: Math.round(worked_ms) });
  } catch (cause) {
    if (!stopped.aborted) log.event("warn", "warm_up_failed", { cause: String(cause) });
  }
}

/**
 * Waits `ms`, and longer if the node is busy. Returns whether the node was idle. `pause` waits for a time, or until the
 * node stops.
 */
async function idleFor(ms: number, isIdle: () => boolean, pause: (ms: number) => Promise<unknown>): Promise<boolean> {
  if (!isIdle()) await pause(busy_ms);
  const began_ms = performance.now();
  await pause(ms);
  return isIdle() && performance.now() - began_ms < ms + late_ms_max;
}
