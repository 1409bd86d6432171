// Clients that ask for a stream and read nothing of it, while the engine writes as fast as it is read.

import type { Socket } from "bun";
import { until } from "../harness/until.ts";
import type { Sent, Target } from "./attack.ts";
import { resident_bytes } from "./process.ts";
import { metricIn, metricsOf } from "./talk.ts";

/** Whoever waits so long for a node whose memory does not move has waited for the engine to be held back. */
const quiet_ms = 1000;
const patience_ms = 60_000;

/** They leave when the engine is held back, and nothing may be held for them then. Each sends a request of its own. */
export async function slowReaders(
  target: Target,
  count: number,
  requestOf: (target: Target) => Uint8Array = requestAt,
): Promise<Sent> {
  const { hostname, port } = new URL(target.url);
  const answers: string[] = [];
  const sockets: Socket[] = [];
  let bytes = 0;
  for (let each = 0; each < count; each++) {
    const request = requestOf(target);
    bytes += request.length;
    sockets.push(
      await Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) => void socket.write(request),
          data(socket, bytes) {
            socket.pause();
            answers.push(bytes.toString("latin1").slice(9, 12));
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
  const problems = await until(isOver, patience_ms, "the last hold").then(
    () => [],
    (late: unknown) => [String(late)],
  );
  return { bytes, unpackedBytes: 0, answers, problems };
}

function requestAt({ url, key, endlessModel }: Target): Uint8Array {
  const { hostname } = new URL(url);
  const messages = [{ role: "user", content: "Hello" }];
  const body = JSON.stringify({ model: endlessModel, stream: true, messages });
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** Whether the process has used hardly any memory more, or less, for a while. */
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
