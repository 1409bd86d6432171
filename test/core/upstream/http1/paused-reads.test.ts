/**
 * Sockets of engines that are paused after each read, as on a busy node: an engine's bytes arrive whole and in order
 * however they are cut, in fewer reads, and a reader that stops has got all bytes that were sent by then. With and
 * without TLS.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import fc from "fast-check";
import { Cancellation, type Signal } from "../../../../src/core/time/cancellation.ts";
import { type Client, client } from "../../../../src/core/upstream/http1/client.ts";
import { ConnectionLost } from "../../../../src/core/upstream/http1/connection.ts";
import type { Reply } from "../../../../src/core/upstream/http1/exchange.ts";
import { ReadPauses } from "../../../../src/core/upstream/http1/read-pauses.ts";
import { busyness } from "../../../harness/busyness.ts";
import { holds, times } from "../../../harness/depth.ts";
import { until } from "../../../harness/until.ts";
import { authority, certificate } from "./certificates.ts";
import { listening } from "./engines.ts";

const clients: Client[] = [];
afterAll(() => {
  for (const one of clients) one.close();
});
const listen = listening();

const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const end = "0\r\n\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** Starts an engine that answers each request on its socket. Returns its URL. */
async function engine(isSecure: boolean, answer: (socket: Socket) => void): Promise<string> {
  const serve = (socket: Socket) => {
    socket.on("error", () => {});
    socket.on("data", () => answer(socket));
  };
  const server = isSecure ? createTlsServer(certificate, serve) : createServer({ noDelay: true }, serve);
  return (await listen(server, isSecure ? "https" : "http")).replace("127.0.0.1", "localhost");
}

function pausing(pause_ms: number): Client {
  const made = client({ pauses: new ReadPauses({ shortest_ms: pause_ms, longest_ms: pause_ms }) });
  clients.push(made);
  return made;
}

function asked(of: Client, url: string, signal: Signal = new Cancellation()): Promise<Reply> {
  const tls = { ca: authority, certificate: null };
  const endpoint = of.at({}, () => ({ url, address: "127.0.0.1", headers: {}, tls }));
  return endpoint.post({ headers: {}, body: "{}", connect_ms: 5_000, isFresh: false, connected() {}, signal });
}

/** Reads to the end, or to a failure. After the first read, the answer is read in portions. */
async function readAll(reply: Reply) {
  const received: Uint8Array[] = [];
  let reads = 0;
  let failure: unknown = null;
  try {
    for (let pieces = await reply.read(); pieces !== null; pieces = await reply.read()) {
      // The next read may reuse the memory of these bytes.
      received.push(Buffer.concat(pieces));
      reads += 1;
      reply.flow();
    }
  } catch (cause) {
    failure = cause;
  }
  return { text: Buffer.concat(received).toString(), reads, failure };
}

/** Writes numbered words to a socket at an interval until it is stopped. */
function words(socket: Socket, every_ms: number) {
  let sent = "";
  let count = 0;
  const timer = setInterval(() => {
    const word = ` ${count++}`;
    sent += word;
    socket.write(chunk(word));
  }, every_ms);
  return {
    sent: () => sent,
    count: () => count,
    stop: () => clearInterval(timer),
  };
}

describe.each([
  ["without TLS", false],
  ["with TLS", true],
] as const)("%s", (_, isSecure) => {
  test("an answer is the same however it is cut, and whenever its parts come", async () => {
    let pieces: { bytes: Uint8Array; wait_ms: number }[] = [];
    const url = await engine(isSecure, async (socket) => {
      for (const { bytes, wait_ms } of pieces) {
        socket.write(bytes);
        if (wait_ms > 0) await Bun.sleep(wait_ms);
      }
    });
    const of = pausing(25);
    const part = fc.record({ text: fc.string({ unit: "binary", maxLength: 300 }), wait_ms: fc.nat({ max: 40 }) });
    const cut = fc.record({ at: fc.nat({ max: 5000 }), wait_ms: fc.nat({ max: 30 }) });
    await holds(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.array(cut, { maxLength: 8 }), async (parts, cuts) => {
        const written = parts.filter(({ text }) => text !== "").map(({ text }) => text);
        const whole = Buffer.from(head + written.map(chunk).join("") + end);
        const places = cuts.map(({ at, wait_ms }) => ({ at: at % whole.length, wait_ms }));
        places.sort((one, other) => one.at - other.at);
        const ends = [...places, { at: whole.length, wait_ms: 0 }];
        pieces = ends.map(({ at, wait_ms }, index) => ({
          bytes: whole.subarray(ends[index - 1]?.at ?? 0, at),
          wait_ms,
        }));
        const { text, failure } = await readAll(await asked(of, url));
        expect(failure).toBeNull();
        expect(text).toBe(written.join(""));
      }),
      times(4, 60),
    );
  }, 60_000);

  test("a reader who stops has all that the engine had sent by then", async () => {
    let sending: ReturnType<typeof words> | null = null;
    const url = await engine(isSecure, (socket) => {
      socket.write(head + chunk("first"));
      sending = words(socket, 4);
    });
    for (const after_ms of [130, 170, 210]) {
      const leaving = new Cancellation();
      const reading = readAll(await asked(pausing(100), url, leaving));
      await until(() => sending !== null, 5_000, "the engine to be asked");
      await Bun.sleep(after_ms);
      const sent = sending!.count();
      const before = sending!.sent();
      leaving.abort("left");
      const { text, failure } = await reading;
      sending!.stop();
      sending = null;
      expect(failure).toBe("left");
      expect(text.startsWith(`first${before}`)).toBe(true);
      expect(text.split(" ").length - 1 - sent).toBeLessThanOrEqual(2);
    }
  });

  test("the end is told within the pause, and so is a connection that breaks off, after all that came before", async () => {
    for (const isBroken of [false, true]) {
      let ended_ms = 0;
      const url = await engine(isSecure, async (socket) => {
        socket.write(head + chunk("a"));
        await Bun.sleep(30);
        socket.write(chunk("b"));
        await Bun.sleep(30);
        ended_ms = performance.now();
        socket.end(chunk("c") + (isBroken ? "" : end));
      });
      const { text, failure } = await readAll(await asked(pausing(100), url));
      const late_ms = performance.now() - ended_ms;
      expect(text).toBe("abc");
      expect(failure instanceof ConnectionLost).toBe(isBroken);
      expect(late_ms).toBeLessThan(1000 * busyness());
    }
  });

  test("the next answer on the same connection waits for nothing", async () => {
    const url = await engine(isSecure, async (socket) => {
      socket.write(head + chunk("a"));
      await Bun.sleep(20);
      socket.write(chunk("b"));
      socket.write(end);
    });
    const of = pausing(100);
    let shortest_ms = Number.POSITIVE_INFINITY;
    for (let request = 0; request < 8; request++) {
      const begun_ms = performance.now();
      const reply = await asked(of, url);
      if (request > 0) shortest_ms = Math.min(shortest_ms, performance.now() - begun_ms);
      expect((await readAll(reply)).text).toBe("ab");
    }
    expect(shortest_ms).toBeLessThan(60);
  });

  test("a slow reader holds the engine back, and reads all of it", async () => {
    const much = "x".repeat(6 * 1024 * 1024);
    let sent = false;
    const url = await engine(isSecure, (socket) => {
      socket.write(head + chunk("first"));
      setTimeout(() => {
        socket.write(chunk(much));
        socket.write(end, () => {
          sent = true;
        });
      }, 10);
    });
    const reply = await asked(pausing(5), url);
    // The number of first words that one read returns depends on the machine.
    let bytes = 0;
    const readOne = async () => {
      const pieces = await reply.read();
      for (const { length } of pieces ?? []) bytes += length;
      return pieces !== null;
    };
    await readOne();
    reply.flow();
    await readOne();
    await Bun.sleep(1000);
    expect(sent).toBe(false);
    while (await readOne());
    expect(bytes).toBe("first".length + much.length);
  });
});
