// One rolling restart: under load, each node in turn is stopped and started again, with the same build or another one.

import type { Fleet } from "./fleet.ts";
import { startLoad, type Tally } from "./load.ts";

export interface RollOptions {
  /** The URL of the balancer. */
  url: string;
  /** The command with which the nodes are started from now on. */
  words: string[];
  streams: number;
  requests_per_second: number;
  /** The duration of one stream: shorter than the drain, and longer than the delay before it. */
  stream_s: number;
  /** The pause after a node's restart, so that it gets requests again before the next node is stopped. */
  settle_ms: number;
  tell(line: string): void;
}

export interface Rolled {
  tally: Tally;
  took_ms: number;
}

export async function roll(fleet: Fleet, options: RollOptions): Promise<Rolled> {
  const { url, words, streams, requests_per_second, stream_s, settle_ms, tell } = options;
  const began = performance.now();
  const load = startLoad({ url, key: fleet.key, stream_s, streams, requests_per_second });
  await Bun.sleep(stream_s * 1000);
  for (const [index, node] of fleet.nodes.entries()) {
    const asked = performance.now();
    await node.stop();
    const stopped = performance.now();
    await node.start(words);
    const [drained_s, started_s] = [stopped - asked, performance.now() - stopped].map((ms) => (ms / 1000).toFixed(1));
    tell(`node ${index + 1}: drained in ${drained_s} s, ready again in ${started_s} s`);
    await Bun.sleep(settle_ms);
  }
  await load.stop();
  return { tally: load.tally, took_ms: performance.now() - began };
}

/** The number of usage windows whose totals differ from the sums of the requests' records. */
export async function differences(fleet: Fleet, words: string[]): Promise<number> {
  return (await fleet.json<unknown[]>(words, "usage", "check")).length;
}
