/**
 * A node that pauses reading from engines' sockets, as a busy one does: answers come in fewer portions and are whole,
 * usage is exact, and a client that disconnects is charged for the tokens that the engine had sent.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { inferenceBodies, model, says, startService } from "../../harness/engine.ts";
import { startHandEngine } from "../../harness/hand-engine.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { responseIn, talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);

const pause_ms = 100;

const more = `server: { read_pause_ms_min: ${pause_ms}, read_pause_ms_max: ${pause_ms} }`;
const service = await startService({ engine: { directives: "", namesModel: false }, more });
const hand = await startHandEngine();
const byHand = await startService({ engineUrl: hand.url, more });
afterAll(async () => {
  await Promise.all([service.stop(), byHand.stop()]);
  hand.stop();
}, 60_000);

const receiptOf = (id: string) => endedReceipt(service, id);

/** The text of all deltas, whatever the protocol. */
function textOf(frames: string): string {
  const data = frames.split("\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
  return data
    .map((event) => {
      if (event.type === "response.output_text.delta") return event.delta as string;
      if (event.type === "content_block_delta") return (event.delta.text ?? "") as string;
      return (event.choices?.[0]?.delta?.content ?? "") as string;
    })
    .join("");
}

describe.each(Object.keys(inferenceBodies))("%s", (path) => {
  const ask = (directives: string, more: object = {}, signal?: AbortSignal) =>
    service.post(path, { model, ...inferenceBodies[path]!(directives), ...more }, signal ? { signal } : {});

  test("a stream is whole, its usage exact, and it comes in portions after its first part", async () => {
    const told = Array.from({ length: 120 }, (_, at) => `word${at}`).join(" ");
    const response = await service.post(path, {
      ...{ model, stream: true },
      ...JSON.parse(JSON.stringify(inferenceBodies[path]!("tps=200 echo")).replace("hello there", told)),
    });
    let text = "";
    let portions = 0;
    for await (const portion of response.body!.pipeThrough(new TextDecoderStream())) {
      text += portion;
      portions += 1;
    }
    expect(textOf(text).trim()).toEndWith(told);
    const { tokens } = service.engine.requests.at(-1)!;
    expect(portions).toBeLessThan(tokens / 3);
    const receipt = await receiptOf(requestIdOf(response));
    expect(receipt).toMatchObject({ outcome: "completed", usage: { output_tokens: tokens, source: "reported" } });
  });

  test("an answer that isn't streamed is whole, and its usage exact", async () => {
    const response = await ask("tps=400 tokens=100", { stream: false });
    expect(response.status).toBe(200);
    const receipt = await receiptOf(requestIdOf(response));
    expect(receipt).toMatchObject({ outcome: "completed", usage: { output_tokens: 100, source: "reported" } });
  });

  test("a client that leaves is charged all that the engine had sent, also what nobody had read yet", async () => {
    const leaving = new AbortController();
    const engine = hand.asked();
    const asked = byHand.post(path, { model, ...inferenceBodies[path]!(""), stream: true }, { signal: leaving.signal });
    const stream = await engine;
    await stream.send(1);
    const response = await asked;
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let read = "";
    const readTokens = async (tokens: number) => {
      while (textOf(read).length < tokens * "so ".length) read += (await reader.read()).value!;
    };
    await readTokens(1);
    // The first portion is read without a pause. The next one is read at once, and a pause begins with it.
    await stream.send(50);
    await readTokens(51);
    await stream.send(50);
    leaving.abort();
    await reader.closed.catch(() => {});
    await stream.closed;
    const { outcome, usage } = await endedReceipt(byHand, requestIdOf(response));
    expect({ outcome, tokens: usage.output_tokens }).toEqual({ outcome: "cancelled", tokens: 101 });
  });
});

test("the arguments of a tool call are whole", async () => {
  const tools = [
    {
      type: "function",
      function: {
        name: "get_weather",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    },
  ];
  const response = await service.post("/v1/chat/completions", {
    ...{ model, messages: says("tps=200"), tools, tool_choice: "required", stream: true },
  });
  const chunks = (await response.text())
    .split("\n")
    .flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
  const written = chunks.map((each) => each.choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments ?? "").join("");
  expect(JSON.parse(written)).toHaveProperty("city");
});

test("a response over a WebSocket is whole, and its usage exact", async () => {
  using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
  const events = await client.create({ model, input: "[simulator: tps=200 tokens=80]" });
  expect(responseIn(events)).toMatchObject({ status: "completed", usage: { output_tokens: 80 } });
});

test("the metrics say how long reads are paused", async () => {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  expect(text).toContain("upstream_read_pause_seconds 0.1");
});
