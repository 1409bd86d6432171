// Attacks with many connections: idle ones, made-up keys, and bodies that never end.

import type { Attack, Bounds, Sent, Target } from "./attack.ts";
import { mib, saying } from "./body.ts";
import {
  type Connections,
  idleAfterStreams,
  idleConnections,
  silentConnections,
  slowloris,
  type Wanting,
} from "./connections.ts";
import { type Attackers, firstUses, p50_ms, served } from "./first-uses.ts";
import { forgedKeys } from "./forged-keys.ts";
import { heldBodies } from "./held-bodies.ts";
import { slowReaders } from "./slow-readers.ts";
import { chatWith, metricsOf } from "./talk.ts";

/** The memory that an open connection may use. */
const connection_bytes = 32 * 1024;
const free_bytes = 64 * mib;
const boundsOf = (connections: number): Bounds => ({
  step_ms: 50,
  growth_bytes: free_bytes + connections * connection_bytes,
});

/**
 * The longest stop of the event loop that parallel requests may cause. Requests that arrive at the same moment are
 * served in one turn of the event loop, up to 1,024 of them, because the runtime takes so many events at a time. That
 * takes as long as 1,024 small requests, of 0.1 to 0.2 ms each (measured).
 */
const at_once_ms = 250;
const idle = { limits: "{ idle_ms: 5000 }" };
const patience_ms = 90_000;

function idling(
  name: string,
  connections: number,
  open: (wanting: Wanting, target: Target) => Promise<Connections>,
): Attack {
  return {
    name: `${connections.toLocaleString("en")} ${name}`,
    node: idle,
    async run(target) {
      const { bytes, closed, livez_failed, seconds } = await open(
        { url: target.url, connections, patience_ms },
        target,
      );
      const problems: string[] = [];
      if (closed < connections) problems.push(`${connections - closed} were still open after ${seconds.toFixed(0)} s`);
      if (livez_failed > 0) problems.push(`${livez_failed} signs of life failed`);
      return { bytes, unpackedBytes: 0, answers: [`closed within ${seconds.toFixed(0)} s`], problems };
    },
    bounds: () => ({ ...boundsOf(connections), step_ms: at_once_ms }),
  };
}

function forging(connections: number): Attack {
  const seconds = 10;
  return {
    name: `${connections.toLocaleString("en")} connections with made-up keys`,
    async run(target) {
      const honest = () => fetch(`${target.url}/v1/models`, { headers: { authorization: `Bearer ${target.key}` } });
      const metrics = () => metricsOf(target);
      const measured = await forgedKeys({ url: target.url, connections, seconds, honest, metrics });
      const { failed, requests } = measured.honest;
      const problems = failed > 0 ? [`${failed} of ${requests} honest requests failed`] : [];
      // The most look-ups of made-up keys: the burst that an address is allowed, those that it regains as time passes,
      // and those that began at the same moment.
      if (measured.looked_up > 300 + 5 * (measured.seconds + 5) + connections)
        problems.push(`${measured.looked_up} made-up keys were looked up`);
      const answers = Object.entries(measured.answered).flatMap(([status, count]) => Array<string>(count).fill(status));
      return { bytes: measured.bytes, unpackedBytes: 0, answers, problems };
    },
    bounds: () => boundsOf(connections),
  };
}

/**
 * An attack on a node during its start, with the first uses of valid keys. The node and its database serve this attack
 * alone.
 */
function starting(name: string, attackers: Attackers): Attack {
  const keys = 20;
  return {
    name: `a start under ${name}`,
    async run() {
      const { alone, attacked, answered } = await firstUses(attackers, keys, true);
      const problems = [];
      if (served(attacked) < keys) problems.push(`${keys - served(attacked)} of ${keys} valid keys were refused`);
      const ratio = p50_ms(attacked) / p50_ms(alone!);
      if (ratio > 2) problems.push(`the first uses of valid keys took ${ratio.toFixed(1)} times as long as alone`);
      const answers = Object.entries(answered).flatMap(([status, count]) => Array<string>(count).fill(status));
      const told = `${served(attacked)} of ${keys} served, p50 ${p50_ms(attacked).toFixed(1)} of ${p50_ms(alone!).toFixed(1)} ms`;
      return { bytes: 150 * answers.length, unpackedBytes: 0, answers: [...answers, told], problems };
    },
    bounds: () => boundsOf(0),
  };
}

/**
 * Sends many endless bodies with one key. Each connection announces the largest allowed body, or sends it in chunks.
 */
function holding(name: string, isChunked: boolean): Attack {
  const [connections, share_bytes] = [40, 64 * mib];
  return {
    name: `${connections} bodies of one key that never end, ${name}`,
    node: { limits: `{ key_in_flight_bytes_max: ${share_bytes} }` },
    async run({ url, pid, key }): Promise<Sent> {
      const sent_bytes = 12 * mib;
      const size = { announced_bytes: 31 * mib, sent_bytes, chunked: isChunked };
      const { refused, haveRetryAfter } = await heldBodies({ url, pid, key, connections, ...size });
      const problems = haveRetryAfter ? [] : ["a refusal had no retry-after"];
      if (!refused.concurrency_limit_exceeded) problems.push("none was refused");
      const answers = Object.entries(refused).flatMap(([code, count]) => Array<string>(count).fill(`429 ${code}`));
      return { bytes: connections * sent_bytes, unpackedBytes: share_bytes, answers, problems };
    },
    bounds: () => ({ step_ms: 150, growth_bytes: 4 * share_bytes + free_bytes }),
  };
}

/**
 * The number of clients that request a stream and read nothing. For each of them, several MiB pass through the node
 * until the system's buffers on both sides are full, and some of that is garbage not yet collected. One turn of the
 * event loop serves all clients, with a few KiB each.
 */
const readers = 60;
const reader_bytes = 1.5 * mib;

const stream = (model: string) => `{"stream":true,${saying(model, '"hi"').slice(1)}`;

export const hungryClients: readonly Attack[] = [
  idling("connections that idle after a 401", 10_000, (wanting) => idleConnections(wanting)),
  idling("connections that idle after an answer", 10_000, (wanting, { key }) => idleConnections(wanting, key)),
  idling("connections that idle after a stream", 1000, (wanting, { key, model }) =>
    idleAfterStreams(wanting, key, stream(model)),
  ),
  idling("connections that say nothing", 10_000, silentConnections),
  idling("heads that never end (slowloris)", 2000, slowloris),
  forging(100),
  forging(1500),
  starting("40 forging addresses", { addresses: 40, per_second: 4, honestAddress: "127.0.0.1" }),
  starting("400 forging addresses", { addresses: 400, per_second: 4, honestAddress: "127.0.0.1" }),
  starting("an address that forges as fast as it can, and has valid keys too", {
    addresses: 1,
    per_second: 1000,
    honestAddress: "127.9.0.1",
  }),
  holding("announced", false),
  holding("in chunks", true),
  {
    name: "200 streams whose client leaves at the first part",
    async run(target) {
      const left = await Promise.all(Array.from({ length: 200 }, () => leaving(target)));
      return { bytes: left.length * stream(target.model).length, unpackedBytes: 0, answers: left };
    },
    bounds: () => boundsOf(200),
  },
  {
    name: "60 clients that read nothing of a stream that does not end",
    isQuick: true,
    run: (target) => slowReaders(target, readers),
    bounds: () => ({ step_ms: 100, growth_bytes: free_bytes + readers * reader_bytes }),
  },
];

async function leaving(target: Target): Promise<string> {
  const response = await chatWith(target, { model: target.model, stream: true });
  await response.body?.getReader().read();
  await response.body?.cancel().catch(() => {});
  return String(response.status);
}
