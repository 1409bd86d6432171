// Measures the speed of the host itself, without Sluice: the same work before and after a run, on the core of the
// targets. If one host is half as fast as another, their absolute figures cannot be compared. Run as a program, it
// prints the results.

import { agentBody } from "../agent-body.ts";
import { percentile } from "./percentile.ts";
import { pinned } from "./process.ts";

export interface HostSpeed {
  /** The CPU time to parse a body of 66 KB and to serialize it again. */
  body_us: number;
  /** The CPU time of a round trip on a socket: a byte is written, read, written back and read. */
  turn_us: number;
}

export async function hostSpeed(): Promise<HostSpeed> {
  const child = Bun.spawn(pinned([process.execPath, import.meta.path]), { stdout: "pipe", stderr: "inherit" });
  return JSON.parse(await child.stdout.text()) as HostSpeed;
}

export function hostText(before: HostSpeed, after: HostSpeed): string {
  const figures = (of: (speed: HostSpeed) => number) => `${of(before).toFixed(0)} and ${of(after).toFixed(0)} µs`;
  const body = `to parse and write 66 KB takes ${figures(({ body_us }) => body_us)}`;
  return `the host itself, before and after: ${body}, a turn of a socket ${figures(({ turn_us }) => turn_us)}`;
}

const rounds = 9;
const bodies = 100;
const turns = 2000;

const body = agentBody("hello", { protocol: "chat", model: "any", isStreamed: false, cap: 256 });

/**
 * Runs `work`, which consists of `count` equal pieces, once in each round. Returns the median over the rounds of the
 * CPU time per piece.
 */
async function middle(count: number, work: () => unknown): Promise<number> {
  const seen: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    seen.push((user + system) / count);
  }
  return percentile(seen, 0.5);
}

function writtenAnew(): number {
  let characters = 0;
  for (let at = 0; at < bodies; at++) characters += JSON.stringify(JSON.parse(body)).length;
  return characters;
}

async function turned(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = turns;
  const echo = { data: (socket: { write(bytes: Uint8Array): number }, bytes: Uint8Array) => void socket.write(bytes) };
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: echo });
  const client = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.port,
    socket: {
      data(socket, bytes) {
        if (--left > 0) socket.write(bytes);
        else resolve();
      },
    },
  });
  client.write("x");
  await promise;
  client.end();
  server.stop(true);
}

if (import.meta.main)
  console.log(JSON.stringify({ body_us: await middle(bodies, writtenAnew), turn_us: await middle(turns, turned) }));
