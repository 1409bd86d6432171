// An engine whose stream a test sends token by token. A test knows which bytes have left the engine: once a send
// resolves, the bytes are in the receive buffers of the client, because it is on the same machine.
import { type AddressInfo, createServer, type Socket } from "node:net";

export interface HandEngine {
  url: string;
  /** Waits for the next request, and returns its stream. */
  asked(): Promise<HandStream>;
  stop(): void;
}

export interface HandStream {
  /**
   * Sends this many tokens, each in a frame of its own. Resolves when the operating system has accepted all of them.
   */
  send(tokens: number): Promise<void>;
  /** Resolves when the client has closed the connection. */
  closed: Promise<void>;
}

const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const frame = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "so " }, finish_reason: null }] })}\n\n`;
const chunk = `${frame.length.toString(16)}\r\n${frame}\r\n`;

export async function startHandEngine(): Promise<HandEngine> {
  const sockets = new Set<Socket>();
  let next = Promise.withResolvers<HandStream>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let request = "";
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      request += bytes.toString("latin1");
      const end = request.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(request)?.[1] ?? 0);
      if (end < 0 || request.length < end + 4 + length) return;
      request = "";
      socket.write(head);
      next.resolve({
        send: (tokens) => new Promise((resolve) => socket.write(chunk.repeat(tokens), () => resolve())),
        closed: new Promise((resolve) => socket.on("close", () => resolve())),
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async asked() {
      const stream = await next.promise;
      next = Promise.withResolvers();
      return stream;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
