// Attacks with connections that stop sending: idle ones after an error or a response, and request heads that never end.
// Each attack is a function that returns its measurements.

import { connect, type Socket } from "node:net";
import { chatOf, probing } from "./talk.ts";

export interface Connections {
  opened: number;
  /** The bytes that the attacker wrote on all connections. */
  bytes: number;
  /** The number of connections that the service had closed when the attack ended. */
  closed: number;
  /** The number of responses to GET /livez other than 200 while the connections were open. */
  livez_failed: number;
  seconds: number;
}

export interface Wanting {
  url: string;
  connections: number;
  /** How long the service may take to close all connections, in milliseconds. */
  patience_ms: number;
}

/** Opens connections that each send one request, without a key unless one is given, and then nothing more. */
export function idleConnections(wanting: Wanting, key: string | null = null): Promise<Connections> {
  return opened(wanting, (socket) => socket.write(chatOf(key, "{}")));
}

/** Opens connections that each read one stream to its end, and then send nothing more. */
export function idleAfterStreams(wanting: Wanting, key: string, body: string): Promise<Connections> {
  return opened(wanting, (socket) => socket.write(chatOf(key, body)));
}

/** Opens connections that each send an endless request head, one header per second. */
export function slowloris(wanting: Wanting): Promise<Connections> {
  return opened(wanting, (socket) => {
    socket.write("GET /v1/models HTTP/1.1\r\nhost: localhost\r\n");
    const drip = setInterval(() => socket.write("a: b\r\n"), 1000);
    socket.on("close", () => clearInterval(drip));
  });
}

/** Opens connections that send nothing at all. */
export function silentConnections(wanting: Wanting): Promise<Connections> {
  return opened(wanting, () => {});
}

/** Opens connections of all these kinds at the same time. `body` is the request for the streams. */
export function allIdle(wanting: Wanting, key: string, body: string): Promise<Connections[]> {
  return Promise.all([
    idleConnections(wanting),
    idleConnections(wanting, key),
    idleAfterStreams(wanting, key, body),
    slowloris(wanting),
    silentConnections(wanting),
  ]);
}

type Begin = (socket: Socket) => unknown;

async function opened({ url, connections, patience_ms }: Wanting, begin: Begin): Promise<Connections> {
  const { port } = new URL(url);
  const started = performance.now();
  const sockets: Socket[] = [];
  const signs = probing(`${url}/livez`, 100);
  let closed = 0;
  const dial = () =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), "127.0.0.1", () => {
        begin(socket);
        resolve();
      });
      sockets.push(socket);
      socket.on("data", () => {});
      socket.on("error", () => resolve());
      socket.on("close", () => {
        closed++;
        resolve();
      });
    });
  // Opens a hundred connections at a time, because more would overflow the kernel's backlog. Does not wait for
  // responses: the service delays the refusals of one address, so ten thousand of them would take minutes.
  for (let count = 0; count < connections; count += 100)
    await Promise.all(Array.from({ length: Math.min(100, connections - count) }, dial));
  const deadline = performance.now() + patience_ms;
  while (closed < connections && performance.now() < deadline) await Bun.sleep(100);
  const seconds = (performance.now() - started) / 1000;
  const bytes = sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
  const { failed: livez_failed } = await signs.end();
  for (const socket of sockets) socket.destroy();
  return { opened: sockets.length, bytes, closed, seconds, livez_failed };
}
