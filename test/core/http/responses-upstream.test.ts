/**
 * `protocol: openai-responses` and `anthropic-messages` in sluice.yaml, over real sockets: a service whose engine speaks
 * one of them, asked in all three protocols. What clients write and read, and what the engine says, is written by hand (../protocol/pairs/wires.ts).
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { startResponsesEngine } from "../../harness/responses-engine.ts";
import { startSluice } from "../../harness/sluice.ts";
import {
  type Answer,
  type Ask,
  type ClientName,
  clientNames,
  engines,
  type Json,
  wires,
} from "../protocol/pairs/wires.ts";

setDefaultTimeout(60_000);

const front = "acme/front-1";
/**
 * This model's engine reports tokens that nobody saw, from which the service learns how many tokens a letter stands
 * for.
 */
const tall = "acme/tall-1";
const engineKey = "canary-responses-key";
const engineModel = "canary-responses-model";
/** Words in every refusal of the engine, which must not reach a client. */
const engineWords = "canary-words-of-the-engine";

/**
 * Models whose engine is another Sluice, which stands in front of the simulator and is asked in Responses or in
 * Messages.
 */
const chained = { responses: "acme/chained-1", messages: "acme/chained-2" };
const entryOf = (id: string, upstream = "canary-responses-engine", model = engineModel) => `
  - id: ${id}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    capabilities: [tools, parallel_tools, vision, reasoning, structured_output, logprobs, files]
    prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }
    routes: [{ upstream: ${upstream}, model: ${model} }]`;

const engine = startResponsesEngine();
const behind = await startService({ engine: { directives: "", namesModel: false } });
const service = await startSluice({
  config: `
upstreams:
  canary-responses-engine: { url: "${engine.url}", protocol: openai-responses, api_key: "\${ENGINE_KEY}" }
  canary-sluice-engine: { url: "${behind.url}/v1", protocol: openai-responses, api_key: "\${BEHIND_KEY}" }
  canary-sluice-messages: { url: "${behind.url}/v1", protocol: anthropic-messages, api_key: "\${BEHIND_KEY}" }
metering: { currency: USD }
models:${entryOf(front)}${entryOf(tall)}${entryOf(chained.responses, "canary-sluice-engine", model)}${entryOf(chained.messages, "canary-sluice-messages", model)}
plans: { pro: {} }
`,
  env: { ENGINE_KEY: engineKey, BEHIND_KEY: behind.key },
  operatorsWords: ["canary-sluice-engine", "canary-sluice-messages", "canary-responses-engine"],
  secrets: [behind.key, model, new URL(behind.url).host, engineKey, engineModel, engineWords, new URL(engine.url).host],
});
afterAll(async () => {
  try {
    await service?.stop();
  } finally {
    await behind?.stop();
    engine.stop();
  }
});

const question: Ask = { instructions: "INSTRUCTION", question: "QUESTION" };
const plain: Answer = { reasoning: "", text: "Hello wörld 🌍", calls: [], end: "stop" };
const played = (answer: Answer) => ({
  stream: engines.responses.stream(answer),
  whole: engines.responses.whole(answer),
});

function reporting(usage: object) {
  const response = { ...(engines.responses.whole(plain) as object), usage };
  const ended = `event: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response })}\n\n`;
  const stream = engines.responses.stream(plain).replace(/event: response\.completed\n.*\n\n$/, ended);
  return { stream, whole: response };
}

function posted(name: ClientName, body: object, stream: boolean): Promise<Response> {
  const usage = name === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  return service.post(wires[name].path, { model: front, ...body, stream, ...usage });
}
const post = (name: ClientName, ask: Ask, stream: boolean, model = front) =>
  posted(name, { ...wires[name].body(ask), model }, stream);

const framesOf = (text: string) =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => ({ data: data! })).filter(({ data }) => data !== "[DONE]");

async function answered(name: ClientName, response: Response, stream: boolean): Promise<Answer> {
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.anything()]);
  return stream ? wires[name].readFrames(framesOf(text)) : wires[name].readReply(JSON.parse(text));
}

/** The same usage, in the form in which each kind of client gets it. */
const usageTold: Record<ClientName, string[]> = {
  chat: [
    ...['"prompt_tokens":90', '"cached_tokens":77', '"cache_write_tokens":3'],
    ...['"completion_tokens":8', '"reasoning_tokens":6'],
  ],
  messages: [
    ...['"input_tokens":10', '"cache_read_input_tokens":77', '"cache_creation_input_tokens":3'],
    ...['"output_tokens":8', '"thinking_tokens":6'],
  ],
  responses: [
    ...['"input_tokens":90', '"cached_tokens":77', '"cache_write_tokens":3'],
    ...['"output_tokens":8', '"reasoning_tokens":6'],
  ],
};

const receiptOf = (response: Response) => endedReceipt(service, requestIdOf(response));

const each = clientNames.flatMap((name) =>
  [true, false].map((stream) => [name, stream ? "a stream" : "whole", stream] as const),
);

describe.each(each)("a %s client, answered as %s", (name, _, stream) => {
  test("gets text, whether the engine streams it or not, and the engine its own key and name", async () => {
    engine.plays(played(plain));
    for (const outputTokens_max of [77, 5000]) {
      const response = await post(name, { ...question, outputTokens_max }, stream);
      expect(await answered(name, response, stream)).toEqual(plain);
      const { path, headers, body } = engine.asked.at(-1)!;
      expect([path, headers.get("authorization")]).toEqual(["/v1/responses", `Bearer ${engineKey}`]);
      expect(body).toMatchObject({
        ...{ model: engineModel, store: false, instructions: "INSTRUCTION", max_output_tokens: outputTokens_max },
        stream: stream || outputTokens_max > 512,
      });
      expect(JSON.stringify(body.input)).toContain("QUESTION");
    }
  });

  test("gets the usage with cached tokens, and is charged for it", async () => {
    const usage = {
      input_tokens: 90,
      input_tokens_details: { cached_tokens: 77, cache_write_tokens: 3 },
      output_tokens: 8,
      output_tokens_details: { reasoning_tokens: 6 },
      total_tokens: 98,
    };
    engine.plays(reporting(usage));
    const answer = await post(name, question, stream, tall);
    const text = await answer.text();
    const last = stream ? text.slice(text.lastIndexOf('"usage"')) : text;
    for (const part of usageTold[name]) expect(last).toContain(part);
    const receipt = await receiptOf(answer);
    expect(receipt.usage).toMatchObject({
      input_tokens: 10,
      cached_input_tokens: 77,
      output_tokens: 8,
      source: "reported",
    });
    expect(nanosOf(receipt.cost.charged)).toBe(10 * 100 + 77 * 10 + 3 * 125 + 8 * 400);
  });

  test("sees that its cap ended the answer, though the engine calls it completed", async () => {
    for (const output_tokens of [77, 76]) {
      engine.plays(reporting({ input_tokens: 3, output_tokens }));
      const response = await post(name, { ...question, outputTokens_max: 77 }, stream, tall);
      const end = output_tokens === 77 ? "length" : "stop";
      expect(await answered(name, response, stream)).toEqual({ ...plain, end });
    }
  });

  test.each([
    [400, 400, "invalid_value"],
    [401, 503, "upstream_unavailable"],
    [429, 429, "capacity_exceeded"],
    [500, 503, "upstream_unavailable"],
    [503, 503, "overloaded"],
  ])("that the engine refuses with %d is told %d %s, and nothing of the engine", async (status, told, code) => {
    const error = { message: engineWords, type: engineWords, code: engineWords, param: engineWords };
    engine.plays({ status, body: { error }, headers: { "retry-after": "7" } });
    const response = await post(name, question, stream);
    const text = await response.text();
    expect([response.status, text.includes(`"${code}"`)]).toEqual([told, true]);
    expect(text).not.toContain(engineWords);
    if (told !== 400) expect(Number(response.headers.get("retry-after"))).toBe(status === 401 ? 120 : 7);
    // An operator has to fix this, so clients that obey the header do not retry but report it at once.
    if (status === 401) expect(response.headers.get("x-should-retry")).toBe("false");
    expect(nanosOf((await receiptOf(response)).cost.charged)).toBe(0);
  });

  test("sees a failure where the engine fails in the middle, not its words", async () => {
    const failure = { status: "failed", error: { code: "server_error", message: engineWords } };
    const stream_ = `${engines.responses.broken(plain).split("event: response.failed")[0]}event: response.failed\ndata: ${JSON.stringify({ type: "response.failed", response: failure })}\n\n`;
    engine.plays({ stream: stream_, whole: failure });
    const response = await post(name, question, stream);
    const text = await response.text();
    expect(text).not.toContain(engineWords);
    if (stream) expect(wires[name].readFrames(framesOf(text)).end).toBe("failed");
    else expect(response.status).toBe(503);
    expect((await receiptOf(response)).outcome).toBe("failed");
  });
});

describe("reasoning that the engine encrypted", () => {
  const proof = "gAAAA+/=proof~ö€";
  const thought = {
    id: "rs_e",
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Hm." }],
    encrypted_content: proof,
  };
  const alone = { id: "rs_f", type: "reasoning", summary: [], encrypted_content: `${proof}2` };
  const said = { id: "msg_e", type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi." }] };
  const response = { id: "r", object: "response", status: "completed", output: [thought, alone, said] };
  const frame = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  const play = {
    whole: response,
    stream: [
      { type: "response.created", response: { id: "r", status: "in_progress", output: [] } },
      ...response.output.flatMap((item, output_index) => [
        {
          type: "response.output_item.added",
          output_index,
          item: { ...item, content: [], summary: [], encrypted_content: "" },
        },
        { type: "response.output_item.done", output_index, item },
      ]),
      { type: "response.completed", response },
    ]
      .map(frame)
      .join(""),
  };
  const seenByEngine = () =>
    (engine.asked.at(-1)!.body.input as { type: string; encrypted_content?: string; summary?: unknown }[]).filter(
      (item) => item.type === "reasoning",
    );
  const expected = [
    { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: proof },
    { type: "reasoning", summary: [], encrypted_content: `${proof}2` },
  ];

  test.each([true, false])("comes back to it byte for byte from a Responses client (streamed: %p)", async (stream) => {
    engine.plays(play);
    const body = { input: [{ role: "user", content: "a" }], reasoning: { effort: "low" }, store: false };
    const text = await (await posted("responses", body, stream)).text();
    const last = stream ? (JSON.parse(framesOf(text).at(-1)!.data) as Json).response : (JSON.parse(text) as Json);
    const output = last!.output as unknown as object[];
    await (
      await posted("responses", { ...body, input: [...body.input, ...output, { role: "user", content: "b" }] }, stream)
    ).text();
    expect(seenByEngine()).toEqual(expected);
  });

  test("comes back to it from what is stored of a response", async () => {
    engine.plays(play);
    const first = (await (await posted("responses", { input: "a" }, false)).json()) as { id: string };
    await (await posted("responses", { input: "b", previous_response_id: first.id }, false)).text();
    expect(seenByEngine()).toEqual(expected);
  });

  test("comes back to it byte for byte from a Messages client, as signature and as redacted thinking", async () => {
    engine.plays(play);
    const body = { max_tokens: 64, messages: [{ role: "user", content: "a" }] as object[] };
    const reply = (await (await posted("messages", body, false)).json()) as { content: object[] };
    expect(reply.content).toMatchObject([
      { type: "thinking", thinking: "Hm.", signature: proof },
      { type: "redacted_thinking", data: `${proof}2` },
      { type: "text", text: "Hi." },
    ]);
    const messages = [...body.messages, { role: "assistant", content: reply.content }, { role: "user", content: "b" }];
    await (await posted("messages", { ...body, messages }, false)).text();
    expect(seenByEngine()).toEqual(expected);
  });
});

// These tests run concurrently, because a node waits between two attempts at an engine that fails.
describe.each(
  Object.entries(chained).flatMap(([by, id]) => each.map(([name, as, stream]) => [name, by, as, id, stream] as const)),
)("a %s client of a Sluice that asks a Sluice in %s, answered as %s", (name, _, __, id, stream) => {
  const ask = (directives: string, text: string, more: Partial<Ask> = {}) =>
    post(name, { instructions: "Be brief.", question: `[simulator: ${directives}] ${text}`, ...more }, stream, id);

  test.concurrent("gets what the last engine says: reasoning, text, calls, the cut of a cap", async () => {
    const said = await answered(name, await ask("reasoning=3 echo", "hello there"), stream);
    expect(said).toMatchObject({ text: "hello there", calls: [], end: "stop" });
    expect(said.reasoning).not.toBe("");
    const tools = ["get_weather", "get_time"];
    const called = await answered(name, await ask("calls=2", "go", { tools }), stream);
    expect([called.calls.map((call) => call.name), called.end]).toEqual([tools, "tool_calls"]);
    const cut = await answered(name, await ask("echo", "hello hello hello hello", { outputTokens_max: 2 }), stream);
    expect([cut.text, cut.end]).toEqual(["hello hello", "length"]);
  });

  test.concurrent.each([
    ["status=429", 429, "capacity_exceeded"],
    ["status=500", 503, "overloaded"],
    ["context-length", 400, "context_length_exceeded"],
  ])("is told what went wrong there (%s) in its own words", async (directives, status, code) => {
    const response = await ask(directives, "hello");
    expect([response.status, (await response.text()).includes(`"${code}"`)]).toEqual([status, true]);
  });
});

test("what Responses has no words for is refused by the caller's own name for it, and the engine is not asked", async () => {
  const before = engine.asked.length;
  const refused: [ClientName, Ask | object, string][] = [
    ["chat", { stop: ["HALT"] }, "stop"],
    ["chat", { logit_bias: { "5": 1 } }, "logit_bias"],
    ["messages", { stop_sequences: ["HALT"] }, "stop_sequences"],
    ["messages", { top_k: 5 }, "top_k"],
  ];
  for (const [name, more, param] of refused) {
    const response = await posted(name, { ...wires[name].body(question), ...more, model: front }, false);
    const { error } = (await response.json()) as { error: { message: string; code?: string; param?: string } };
    expect(response.status).toBe(400);
    expect(JSON.stringify(error)).toContain("unsupported_feature");
    expect(error.message).toContain(param);
    if (name === "chat") expect(error.param).toBe(param);
  }
  expect(engine.asked.length).toBe(before);
});
