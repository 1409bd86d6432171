/**
 * The memory of a node while it serves ten concurrent embedding requests of the maximum size: 2,048 inputs of 8 KB
 * each, and responses of 33 MB, of which the node buffers 1 MiB (src/features/operations/reader.ts).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { forgetPeak, peak_bytes, resident_bytes } from "../../attacks/process.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { modelEntry } from "./model-entry.ts";

const mebibyte = 1024 * 1024;
const inputs = 2_048;
const input_bytes = 8_000;
const at_once = 10;
const dimensions = 3_072;
const body_bytes = inputs * input_bytes;
const answer_bytes = Math.floor(inputs * dimensions * 4 * (4 / 3));

/** The bound per request: its body twice (as received, and as parsed or sent), and 8 MiB for its response. */
const request_bytes_max = 2 * body_bytes + 8 * mebibyte;

const vector = Buffer.from(new Float32Array(dimensions).fill(0.0180422).buffer).toString("base64");
const item = (index: number) =>
  `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":"${vector}"}`;

/** An engine that sends its response as fast as it is read. */
const engine = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  maxRequestBodySize: 2 * body_bytes,
  idleTimeout: 0,
  async fetch(request) {
    await request.arrayBuffer();
    let index = 0;
    const encoder = new TextEncoder();
    const stream = new ReadableStream({
      pull(controller) {
        if (index === 0) controller.enqueue(encoder.encode('{"object":"list","data":['));
        controller.enqueue(encoder.encode(item(index++)));
        if (index < inputs) return;
        controller.enqueue(encoder.encode(`],"usage":{"prompt_tokens":${inputs},"total_tokens":${inputs}}}`));
        controller.close();
      },
    });
    return new Response(stream, { headers: { "content-type": "application/json" } });
  },
});

let service: Sluice;
beforeAll(async () => {
  const config = `upstreams: { main: { url: "http://127.0.0.1:${engine.port}/v1" } }
metering: { currency: USD }
models: ${modelEntry("acme/embed-1", "embedding", "main")}
limits: { body_bytes_max: ${2 * body_bytes} }
`;
  service = await startSluice({ config, store: "postgres" });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await engine.stop(true);
}, 60_000);

/** Requests embeddings. Returns the size of the response in bytes, which is read and discarded. */
async function embedded(body: string): Promise<number> {
  const response = await fetch(`${service.url}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body,
  });
  expect(response.status).toBe(200);
  let bytes = 0;
  for await (const chunk of response.body!) bytes += chunk.byteLength;
  return bytes;
}

test("2,048 inputs of 8 KB, ten requests at once: the node's memory is bounded by the requests, not the answers", async () => {
  const text = "word ".repeat(input_bytes / 5);
  const body = JSON.stringify({ model: "acme/embed-1", input: Array(inputs).fill(text), encoding_format: "base64" });
  await embedded(JSON.stringify({ model: "acme/embed-1", input: Array(inputs).fill("a"), encoding_format: "base64" }));
  const before_bytes = resident_bytes(service.pid);
  forgetPeak(service.pid);
  const answers = await Promise.all(Array.from({ length: at_once }, () => embedded(body)));
  for (const bytes of answers) expect(bytes).toBeGreaterThan(answer_bytes);
  const growth_bytes = peak_bytes(service.pid) - before_bytes;
  const mebibytes = (bytes: number) => Math.round(bytes / mebibyte);
  console.log(
    `before ${mebibytes(before_bytes)} MiB, at most ${mebibytes(growth_bytes)} MiB more, for ${mebibytes(at_once * body_bytes)} MiB of inputs and ${mebibytes(at_once * answer_bytes)} MiB of answers`,
  );
  expect(growth_bytes).toBeLessThan(at_once * request_bytes_max);
}, 180_000);
