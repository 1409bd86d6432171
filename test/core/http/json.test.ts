/**
 * A JSON answer is written to the socket in a few writes, whatever its size. Rule: docs/design/runtime.md, Bun as a
 * server.
 */
import { dlopen, ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { json } from "../../../src/core/http/json.ts";
import { until } from "../../harness/until.ts";

const SOL_TCP = 6;
const TCP_INFO = 11;
/** The offset in `struct tcp_info` of the number of received segments with data. */
const tcpi_data_segs_in = 152;
const { symbols } = dlopen("libc.so.6", {
  getsockopt: { args: ["int", "int", "int", "ptr", "ptr"], returns: "int" },
});

function segmentsIn(socket: object): number {
  const info = new Uint8Array(256);
  const length = Int32Array.of(info.length);
  if (symbols.getsockopt((socket as { fd: number }).fd, SOL_TCP, TCP_INFO, ptr(info), ptr(length)) !== 0)
    throw new Error("the system says nothing of the socket");
  return new DataView(info.buffer).getUint32(tcpi_data_segs_in, true);
}

/**
 * The answers of several concurrent clients, each with its number of TCP segments; all clients are answered at the same
 * moment.
 */
async function answers(body: object, headers: Record<string, string>, count = 8) {
  let asked = 0;
  const all = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    async fetch() {
      if (++asked === count) setTimeout(() => all.resolve(), 1);
      await all.promise;
      return json(200, body, headers);
    },
  });
  try {
    return await Promise.all(Array.from({ length: count }, () => answer(server.port!)));
  } finally {
    await server.stop(true);
  }
}

async function answer(port: number): Promise<{ segments: number; text: string }> {
  const text = new TextDecoder();
  let got = "";
  const data = (_: unknown, bytes: Uint8Array) => {
    got += text.decode(bytes, { stream: true });
  };
  const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data } });
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const isWhole = () => {
    const length = /^content-length: (\d+)\r$/im.exec(got)?.[1];
    if (length === undefined) return got.endsWith("\r\n0\r\n\r\n");
    return new TextEncoder().encode(got.split("\r\n\r\n").slice(1).join("\r\n\r\n")).length === Number(length);
  };
  await until(isWhole, 20_000, "the answer");
  const segments = segmentsIn(socket);
  socket.end();
  return { segments, text: got };
}

const names = Array.from({ length: 20 }, (_, at) => `x-name-${at}`);
const headers = Object.fromEntries(names.map((name) => [name, name.repeat(4)]));

test.each([
  ["10", "a", 10],
  ["12 KiB", "a", 12 * 1024 - 50],
  ["a little more", "a", 12 * 1024 + 50],
  ["20 KiB", "a", 20 * 1024],
  ["35 KiB", "a", 35 * 1024],
  ["5,000 letters of three bytes", "一", 5000],
  ["4 MiB", "é", 2 * 1024 * 1024],
] as const)(
  "an answer of %s is whole and in few segments, with all of its head, however many end at once",
  async (_, letter, count) => {
    const body = { text: letter.repeat(count) };
    const seen = await answers(body, headers);
    // There are at most as many segments as the bytes need, and a few more. If each name, value and punctuation mark
    // had a separate segment, there would be 90.
    const needed = Math.ceil(JSON.stringify(body).length / 4096);
    for (const { segments, text } of seen) {
      expect(segments).toBeLessThanOrEqual(needed + 12);
      for (const name of names) expect(text).toContain(`\r\n${name}: ${headers[name]}\r\n`);
      expect(text).toMatch(/\r\ncontent-type: application\/json\r\n/i);
      expect(text.includes(JSON.stringify(body))).toBe(true);
    }
  },
);
