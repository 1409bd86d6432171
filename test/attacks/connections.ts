// Connections that want nothing: idle ones after a refusal or an answer, and heads that never end. Each attack is a
// function that returns its measurements.

import { connect, type Socket } from "node:net";

export interface Connections {
  opened: number;
  /** The bytes that the attacker wrote on all connections. */
  bytes: number;
  /** The number of connections that the service had closed by the end. */
  closed: number;
  /** The slowest answer of GET /livez while the connections were open. */
  livez_ms_max: number;
  /** The number of answers of GET /livez that were not a 200. */
  livez_failed: number;
  seconds: number;
}

export interface Wanting {
  url: string;
  connections: number;
  /** How long the service may take to close all connections. */
  patience_ms: number;
}

/** Opens connections that each send one request, without a key unless one is given, and then nothing more. */
export function idleConnections(wanting: Wanting, key: string | null = null): Promise<Connections> {
  return opened(wanting, (socket) => socket.write(asking(key, "{}")));
}

/** Opens connections that each read one stream to its end, and then send nothing more. */
export function idleAfterStreams(wanting: Wanting, key: string, body: string): Promise<Connections> {
  return opened(wanting, (socket) => socket.write(asking(key, body)));
}

/** Opens connections that each write a head, one header a second, and never end it. */
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

function asking(key: string | null, body: string): string {
  const credential = key === null ? "" : `authorization: Bearer ${key}\r\n`;
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n${credential}content-type: application/json\r\n`;
  return `${head}content-length: ${body.length}\r\n\r\n${body}`;
}

type Begin = (socket: Socket) => unknown;

async function opened({ url, connections, patience_ms }: Wanting, begin: Begin): Promise<Connections> {
  const { port } = new URL(url);
  const started = performance.now();
  const sockets: Socket[] = [];
  const signs = signsOfLife(url);
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
  // Opens a hundred at a time: if more were opened, the kernel's backlog would overflow. Answers are not awaited: the
  // refusals of one address are slow, and ten thousand of them would take minutes.
  for (let count = 0; count < connections; count += 100)
    await Promise.all(Array.from({ length: Math.min(100, connections - count) }, dial));
  const deadline = performance.now() + patience_ms;
  while (closed < connections && performance.now() < deadline) await Bun.sleep(100);
  const seconds = (performance.now() - started) / 1000;
  const bytes = sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
  const measured = { opened: sockets.length, bytes, closed, seconds, ...(await signs.end()) };
  for (const socket of sockets) socket.destroy();
  return measured;
}

function signsOfLife(url: string) {
  let livez_ms_max = 0;
  let livez_failed = 0;
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const asked = performance.now();
      const status = await fetch(`${url}/livez`, { signal: AbortSignal.timeout(30_000) }).then(
        (response) => response.status,
        () => 0,
      );
      if (status !== 200) livez_failed++;
      livez_ms_max = Math.max(livez_ms_max, performance.now() - asked);
      await Bun.sleep(100);
    }
  })();
  return {
    async end() {
      isOver = true;
      await asking;
      return { livez_ms_max, livez_failed };
    },
  };
}
