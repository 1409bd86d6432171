/** The words of an engine that fails inside its answer: in the request's record, and neither with the client nor in the log. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { lineOf } from "../harness/log-lines.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { asks } from "./callers.ts";
import { configOf } from "./config.ts";

const words = "CUDA error: device-side assert triggered";
/** An engine that begins an answer, and then says why it cannot go on, in a stream whose status was 200. */
const engine = Bun.serve({
  port: 0,
  fetch: async (request) => {
    await request.arrayBuffer();
    const chunk = { choices: [{ index: 0, delta: { role: "assistant", content: "It begins." }, finish_reason: null }] };
    const failure = { error: { message: `${words} in "my private words"`, type: "server_error", code: 500 } };
    const text = [chunk, failure].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  },
});
let sluice: Sluice;

beforeAll(async () => {
  sluice = await startSluice({
    config: configOf({ gpu: { url: `http://127.0.0.1:${engine.port}/v1` } }, { breaking: ["gpu"] }),
  });
}, 60_000);
afterAll(async () => {
  await sluice?.stop();
  await engine.stop(true);
});

interface Shown {
  outcome: string;
  route: { tried: { outcome: string; said?: string }[] };
}

test.each([
  ["chat", true],
  ["messages", true],
  ["responses", true],
  ["chat", false],
] as const)("are found by `request show`: %s, streamed %p", async (caller, stream) => {
  const told = await asks(sluice, caller, "acme/breaking", stream);
  expect([told.isComplete, JSON.stringify(told).includes("CUDA")]).toEqual([false, false]);
  const shown = await sluice.json<Shown>("request", "show", told.requestId);
  expect(shown).toMatchObject({
    outcome: "failed",
    route: { tried: [{ outcome: "failed", said: `${words} in "…"` }] },
  });
  expect((await sluice.cli("request", "show", told.requestId)).stdout).toContain(words);
  const line = await lineOf(sluice, { event: "request", request_id: told.requestId });
  expect(JSON.stringify(line)).not.toContain("CUDA");
});
