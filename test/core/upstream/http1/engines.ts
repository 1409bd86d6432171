// Engines that are nothing but a socket: a test decides which bytes answer each request, and sees on which connection
// the request came.

import { afterAll } from "bun:test";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Reply } from "../../../../src/core/upstream/http1/exchange.ts";

export type Answer = (socket: Socket, request: string, nth: number) => void;

export interface Engine {
  url: string;
  /** The connections of the requests, in order: `0 0 1` means two on the first connection and one on the second. */
  requests: number[];
  /** The number of requests on each connection, in the order in which the connections were made. */
  connections: number[];
  /** The number of open connections. */
  open(): number;
  stop(): Promise<void>;
}

/**
 * A function that lets servers listen. They and all their connections are closed after the tests of the calling file.
 */
export function listening(): (server: Server, scheme?: "http" | "https") => Promise<string> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
  });
  return async (server, scheme = "http") => {
    servers.push(server);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat`;
  };
}

/** An engine that calls `answer` for each whole request: `nth` counts the requests of one connection, from 0. */
export async function startEngine(listen: ReturnType<typeof listening>, answer: Answer): Promise<Engine> {
  const requests: number[] = [];
  const connections: number[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const number = connections.push(0) - 1;
    let text = "";
    /** The length of the request at the beginning of `text`; 0 until its headers are complete. */
    let length = 0;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      for (;;) {
        length ||= requestLength(text);
        if (length === 0 || text.length < length) return;
        const request = text.slice(0, length);
        text = text.slice(length);
        length = 0;
        requests.push(number);
        answer(socket, request, connections[number]!++);
      }
    });
  });
  const url = await listen(server);
  const stop = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return { url, requests, connections, open: () => open.size, stop };
}

function requestLength(text: string): number {
  const head = text.indexOf("\r\n\r\n");
  return head < 0 ? 0 : head + 4 + Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
}

export async function textOf(reply: Reply): Promise<string> {
  const pieces: Uint8Array[] = [];
  for (let read = await reply.read(); read !== null; read = await reply.read()) pieces.push(...read);
  return Buffer.concat(pieces).toString();
}
