// Many connections, each of which sends a request with a made-up key, reads the response and sends the next request
// with another key: `bun test/attacks/flood.ts URL CONNECTIONS`, until it is killed. It is a separate process, so that
// its CPU time is not counted in the measured process. Once a second it prints the number of responses, by status.

import { connect, type Socket } from "node:net";
import { key_random_bytes, newKey } from "../../src/core/auth/credential.ts";
import { headOf } from "./talk.ts";

/**
 * The number of connections that are opened at a time: more would overflow the kernel's backlog, which would not be the
 * service's fault.
 */
const dialed_at_once = 50;

export function forgedKey(): string {
  return newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)));
}

export interface Flood {
  /** The number of responses so far, by status. */
  answered: ReadonlyMap<string, number>;
  /** The number of bytes written so far. */
  bytes(): number;
  end(): void;
}

/**
 * Opens the connections in this process. `requestOf` returns the text of the next request on the connection with this
 * number.
 */
export async function flood(url: string, connections: number, requestOf = withForgedKey): Promise<Flood> {
  const { port } = new URL(url);
  const answered = new Map<string, number>();
  const sockets = new Set<Socket>();
  let isOver = false;
  let bytes = 0;
  const ask = (socket: Socket, at: number) => {
    const text = requestOf(at);
    bytes += text.length;
    socket.write(text);
  };
  const dial = (at: number) => {
    if (isOver) return;
    const socket = connect(Number(port), "127.0.0.1", () => ask(socket, at));
    sockets.add(socket);
    socket.on("data", (data) => {
      const text = data.toString("latin1");
      if (!text.startsWith("HTTP/1.1 ")) return;
      const status = text.slice(9, 12);
      answered.set(status, (answered.get(status) ?? 0) + 1);
      ask(socket, at);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      setTimeout(() => dial(at), 100);
    });
  };
  for (let opened = 0; opened < connections; opened++) {
    dial(opened);
    if (opened % dialed_at_once === 0) await Bun.sleep(10);
  }
  return {
    answered,
    bytes: () => bytes,
    end() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

function withForgedKey(_connection: number): string {
  return headOf("GET /v1/models", forgedKey());
}

if (import.meta.main) {
  const [url = "", connections = "100"] = process.argv.slice(2);
  const { answered } = await flood(url, Number(connections));
  setInterval(() => console.log(JSON.stringify(Object.fromEntries(answered))), 1000);
}
