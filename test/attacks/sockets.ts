// Attacks with WebSockets: a million small messages, and clients that read nothing of endless responses.

import type { Attack, Sent, Target } from "./attack.ts";
import { mib } from "./body.ts";
import { slowReaders } from "./slow-readers.ts";

function upgradeAt({ url, key }: Pick<Target, "url" | "key">): string {
  const fields = [
    `host: ${new URL(url).host}`,
    `authorization: Bearer ${key}`,
    ...["connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"],
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  return `GET /v1/responses HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`;
}

/** A masked text frame, as clients must send. The mask is zero, so the text is unchanged. */
function frameOf(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const size = bytes.length < 126 ? [0x80 | bytes.length] : [0x80 | 126, bytes.length >> 8, bytes.length & 0xff];
  return Buffer.concat([Uint8Array.from([0x81, ...size, 0, 0, 0, 0]), bytes]);
}

const connections = 16;
const messages = 1_000_000;

/** Opens connections that each send messages without a pause, and waits until the node closes them. */
async function flood(target: Target): Promise<Sent> {
  const { hostname, port } = new URL(target.url);
  const some = Buffer.concat(Array<Uint8Array>(1000).fill(frameOf("{}")));
  const upgrade = upgradeAt(target);
  const answers = await Promise.all(
    Array.from({ length: connections }, async () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      let status = "";
      let left = messages / connections / 1000;
      const write = (socket: Bun.Socket) => {
        for (; left > 0; left--) if (socket.write(some) < some.length) return;
      };
      await Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) => void socket.write(upgrade),
          data(socket, bytes) {
            if (status === "") status = bytes.toString("latin1").slice(9, 12);
            write(socket);
          },
          drain: write,
          close: () => resolve(status),
          error: () => resolve(status),
        },
      });
      const late = Bun.sleep(60_000).then(() => "still open");
      return Promise.race([promise, late]);
    }),
  );
  const problems = answers.filter((answer) => answer !== "101").map((answer) => `a connection was ${answer}`);
  return { bytes: messages * frameOf("{}").length, unpackedBytes: 0, answers, problems };
}

const readers = 60;
/**
 * The memory that one client may use, twice as much as for an SSE stream, because each event that was sent is a
 * separate text that the collector has not freed yet.
 */
const reader_bytes = 3 * mib;

/** The request for an endless response. */
const endless = ({ endlessModel }: Target) =>
  JSON.stringify({ type: "response.create", model: endlessModel, input: "Hello" });

export const socketAttacks: readonly Attack[] = [
  {
    name: "a million small messages on 16 WebSockets",
    isQuick: true,
    run: flood,
    bounds: () => ({ step_ms: 100, growth_bytes: 64 * mib }),
  },
  {
    name: `${readers} WebSockets that read nothing of a stream that does not end`,
    run: (target) =>
      slowReaders(target, readers, () => ({
        request: Buffer.from(upgradeAt(target)),
        frames: frameOf(endless(target)),
      })),
    bounds: () => ({ step_ms: 100, growth_bytes: 64 * mib + readers * reader_bytes }),
  },
];
