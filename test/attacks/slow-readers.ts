// Clients that request a stream and read nothing, while the engine sends as fast as the service reads.

import type { Socket } from "bun";
import { until } from "../harness/until.ts";
import type { Sent, Target } from "./attack.ts";
import { resident_bytes } from "./process.ts";
import { chatOf, metricIn, metricsOf } from "./talk.ts";

/**
 * How long the node's memory must be constant, in milliseconds, until backpressure from the idle clients counts as
 * having stopped the engine.
 */
const quiet_ms = 1000;
const patience_ms = 60_000;

/** The bytes that a client sends. */
export interface Asking {
  request: Uint8Array;
  /** WebSocket frames to send after the 101: a client that sends them earlier has no WebSocket yet. */
  frames?: Uint8Array;
}

/**
 * Opens clients that read nothing. They leave when backpressure has stopped the engine, and then the ledger must have
 * no hold of theirs. `askingOf` is called for each client.
 */
export async function slowReaders(
  target: Target,
  count: number,
  askingOf: (target: Target) => Asking = plainAsking,
): Promise<Sent> {
  const { hostname, port } = new URL(target.url);
  const answers: string[] = [];
  const sockets: Socket[] = [];
  let bytes = 0;
  for (let each = 0; each < count; each++) {
    const { request, frames } = askingOf(target);
    bytes += request.length + (frames?.length ?? 0);
    let status = "";
    sockets.push(
      await Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) => void socket.write(request),
          data(socket, bytes) {
            const isFirst = status === "";
            status ||= bytes.toString("latin1").slice(9, 12);
            if (isFirst && frames && status === "101") return void socket.write(frames);
            socket.pause();
            answers.push(status);
          },
        },
      }),
    );
  }
  try {
    await until(() => answers.length === count, patience_ms, "the first part of each");
    await until(isStill(target.pid), patience_ms, "the engine to be held back");
  } finally {
    for (const socket of sockets) socket.terminate();
  }
  const holds = async () => metricIn(await metricsOf(target), "usage_holds");
  const isOver = async () => (await holds()) === 0;
  const late = await until(isOver, patience_ms, "the last hold").then(
    () => [],
    (thrown: unknown) => [String(thrown)],
  );
  const refused = answers.filter((status) => status !== "200" && status !== "101");
  const problems = [...late, ...refused.map((status) => `a client got ${status}`)];
  return { bytes, unpackedBytes: 0, answers, problems };
}

function plainAsking({ key, endlessModel }: Target): Asking {
  const messages = [{ role: "user", content: "Hello" }];
  return { request: Buffer.from(chatOf(key, JSON.stringify({ model: endlessModel, stream: true, messages }))) };
}

/** Returns a function that tells whether the process's memory has hardly changed for a while. */
function isStill(pid: number): () => boolean {
  const seen: { at_ms: number; bytes: number }[] = [];
  return () => {
    const at_ms = performance.now();
    seen.push({ at_ms, bytes: resident_bytes(pid) });
    const late = seen.filter((look) => look.at_ms >= at_ms - quiet_ms);
    const sizes = late.map(({ bytes }) => bytes);
    const isWhole = seen[0]!.at_ms < at_ms - quiet_ms;
    return isWhole && Math.max(...sizes) - Math.min(...sizes) < 1024 * 1024;
  };
}
