/**
 * A node in front of engines with dialects: the requests that engines get, and a refusal as clients and as operators
 * read it.
 */
import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { requestIdOf } from "../../harness/receipts.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

type Json = Record<string, unknown>;
const asked: Json[] = [];
let answer: (body: Json) => Response = () => fine();

function fine(
  message: object = { role: "assistant", content: "Four degrees." },
  usage: object = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 },
): Response {
  return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }], usage });
}

/** The answer of an engine that speaks Responses. */
function spoken(): Response {
  const content = [{ type: "output_text", text: "Four degrees.", annotations: [] }];
  return Response.json({
    ...{ object: "response", status: "completed", output: [{ type: "message", role: "assistant", content }] },
    usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
  });
}

const betas: (string | null)[] = [];

const engine = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Json;
    asked.push(body);
    betas.push(request.headers.get("anthropic-beta"));
    return answer(body);
  },
});
const url = `http://127.0.0.1:${engine.port}/v1`;
const model = (id: string, upstream: string, more = "", spare = "") => `
  - id: acme/${id}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 500
    capabilities: [tools, parallel_tools, reasoning]
    prices: { input: 0.1, output: 0.4 }${more}
    routes: [{ upstream: ${upstream}, model: m }${spare}]`;
const spare = ", { upstream: caps, model: m, priority: 1 }";
const config = `
upstreams:
  own: { url: "${url}", dialect: vllm }
  hosted: { url: "${url}", dialect: openai }
  strict: { url: "${url}" }
  claude: { url: "${url}", protocol: anthropic-messages, dialect: anthropic }
  parts: { url: "${url}", protocol: anthropic-messages, dialect: vllm }
  caps: { url: "${url}", protocol: openai-responses, dialect: openai }
metering: { currency: USD }
models:${model("several", "own", "", spare)}${model("own", "own", "\n    bounds: engine")}${model("hosted", "hosted", "\n    bounds: engine")}${model("strict", "strict")}${model("claude", "claude")}${model("parts", "parts")}${model("caps", "caps")}${model("taught", "own")}
plans: { pro: {} }
`;
const sluice = await startSluice({ config });
afterAll(async () => {
  await sluice.stop();
  await engine.stop(true);
});
beforeEach(() => {
  asked.length = 0;
  answer = () => fine();
});

const hi = [{ role: "user", content: "hi" }];
const chat = (id: string, more: object = {}) =>
  sluice.post("/v1/chat/completions", { model: `acme/${id}`, messages: hi, max_tokens: 100, ...more });
const thoughtful = [
  ...hi,
  { role: "assistant", content: "Yes.", reasoning_content: "Hm, hm." },
  { role: "user", content: "go on" },
];
const errorIn = async (response: Response) => ((await response.json()) as { error: Json }).error;

describe("what an engine gets", () => {
  test("is said in its dialect", async () => {
    expect((await chat("own", { messages: thoughtful, reasoning_effort: "max", tools: [] })).status).toBe(200);
    expect(asked[0]).toMatchObject({ max_tokens: 100, reasoning_effort: "max" });
    expect((asked[0]!.messages as Json[])[1]).toMatchObject({ reasoning: "Hm, hm.", reasoning_content: "Hm, hm." });
    expect((await chat("hosted", { messages: thoughtful })).status).toBe(200);
    expect(asked[1]).toMatchObject({ max_completion_tokens: 100 });
    expect(asked[1]).not.toHaveProperty("max_tokens");
    expect((asked[1]!.messages as Json[])[1]).toEqual({ role: "assistant", content: "Yes." });
    await until(() => sluice.stderr().includes('"request_part_lost"'), 5_000);
    expect(sluice.stderr()).toContain('"loss":"thoughts"');
  });

  test("is any text that may fit, whatever the texts of others have taught about the model", async () => {
    const said = (text: string) => chat("taught", { messages: [{ role: "user", content: text }] });
    answer = (body) => {
      const { length } = String((body.messages as Json[])[0]!.content);
      return fine(undefined, { prompt_tokens: length, completion_tokens: 5, total_tokens: length + 5 });
    };
    // Digits, of which each is a token: no text of a colleague has more tokens to a byte.
    for (let time = 0; time < 20; time++) expect((await said("7".repeat(100_000))).status).toBe(200);
    expect((await said("a word ".repeat(35_000))).status).toBe(200);
  });

  test("is no more than it takes, and no less than the model's bounds allow", async () => {
    const tools = Array.from({ length: 129 }, (_, at) => ({ type: "function", function: { name: `server.t${at}` } }));
    expect((await chat("own", { tools })).status).toBe(200);
    const hosted = await chat("hosted", { tools });
    const refused = { code: "unsupported_feature", param: "tools" };
    expect([hosted.status, await errorIn(hosted)]).toMatchObject([400, refused]);
    const strict = await chat("strict", { tools });
    expect((await errorIn(strict)).message).toContain("'bounds: engine'");
    const words = await chat("hosted", { reasoning_effort: "max" });
    expect(await errorIn(words)).toMatchObject({ code: "invalid_value", param: "reasoning_effort" });
    expect(asked).toHaveLength(1);
  });

  test("is what a client of Messages wrote, with its betas, where the engine has all of the protocol", async () => {
    answer = () =>
      Response.json({
        ...{
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "m",
          stop_reason: "end_turn",
          stop_sequence: null,
        },
        ...{ content: [{ type: "text", text: "Found." }], usage: { input_tokens: 20, output_tokens: 5 } },
      });
    const says = (role: string, ...content: object[]) => ({ role, content });
    const messages = [
      says("user", { type: "text", text: "Fetch the page." }),
      { ...says("system", { type: "text", text: "Be brief." }), clear_at: "next_user_message" },
      says("assistant", { type: "tool_use", id: "toolu_1", name: "ToolSearch", input: {} }),
      says("user", {
        ...{ type: "tool_result", tool_use_id: "toolu_1" },
        content: [{ type: "tool_reference", tool_name: "WebFetch" }],
      }),
    ];
    const schema = { input_schema: { type: "object" } };
    const tools = [
      { name: "ToolSearch", ...schema },
      { name: "WebFetch", ...schema, defer_loading: true },
    ];
    const headers = { "anthropic-beta": "tools-2026-01-01" };
    const post = (id: string) =>
      sluice.post("/v1/messages", { model: `acme/${id}`, max_tokens: 100, messages, tools }, { headers });
    expect((await post("claude")).status).toBe(200);
    expect([asked[0]!.messages, asked[0]!.tools, betas.at(-1)]).toEqual([messages, tools, headers["anthropic-beta"]]);
    expect((await post("parts")).status).toBe(200);
    expect(JSON.stringify(asked[1])).not.toMatch(/defer_loading|tool_reference|clear_at/);
    expect(betas.at(-1)).toBeNull();
  });

  test("has a cap that it takes, for a client that probes with a lower one", async () => {
    answer = () => spoken();
    for (const max_tokens of [1, 100]) expect((await chat("caps", { max_tokens })).status).toBe(200);
    answer = () => fine();
    expect((await chat("hosted", { max_tokens: 1 })).status).toBe(200);
    expect(asked.map((body) => body.max_output_tokens ?? body.max_completion_tokens)).toEqual([16, 100, 1]);
  });

  test("has the client's own cap, if it takes that and only another engine of the model does not", async () => {
    expect((await chat("several", { max_tokens: 1 })).status).toBe(200);
    answer = ({ messages }) => (messages ? new Response(null, { status: 503 }) : spoken());
    expect((await chat("several", { max_tokens: 1 })).status).toBe(200);
    expect(asked.map(({ max_tokens, max_output_tokens }) => max_tokens ?? max_output_tokens)).toEqual([1, 1, 16]);
  });

  test("has no field that it has refused in the last hour", async () => {
    answer = (body) =>
      JSON.stringify(body).includes("reasoning_content")
        ? Response.json({ error: { message: "Unknown field `reasoning_content`" } }, { status: 400 })
        : fine();
    for (const count of [2, 3]) {
      expect((await chat("strict", { messages: thoughtful })).status).toBe(200);
      expect(asked).toHaveLength(count);
    }
    expect(JSON.stringify(asked[2])).toContain("Yes.");
  });

  test("comes back to it: what it sent with a call", async () => {
    const call = { id: "g1", type: "function", function: { name: "weather", arguments: "{}" } };
    const signed = { ...call, extra_content: { google: { thought_signature: "AbC+/=" } } };
    answer = () => fine({ role: "assistant", content: null, tool_calls: [signed] });
    const tools = [{ type: "function", function: { name: "weather" } }];
    const first = (await (await chat("strict", { tools })).json()) as { choices: { message: Json }[] };
    answer = () => fine();
    const result = { role: "tool", tool_call_id: "g1", content: "4 C" };
    const messages = [...hi, first.choices[0]!.message, result];
    expect((await chat("strict", { tools, messages })).status).toBe(200);
    expect((asked[1]!.messages as Json[])[1]).toMatchObject({ tool_calls: [signed] });
  });
});

describe("the text of an engine's refusal", () => {
  const said =
    "temperature must be in [0, 1], got 2.0. You wrote 'private words' with sk-abcdefghijklmnopqrstuvwxyz123456";

  test("is the client's as far as it is a known sentence, and the operator's in the request's record", async () => {
    answer = () => Response.json({ error: { message: said } }, { status: 400 });
    const response = await chat("own", { temperature: 2 });
    expect(response.status).toBe(400);
    const message = "temperature must be in [0, 1], got 2.0.";
    expect(await errorIn(response)).toMatchObject({ message, param: "temperature" });
    const id = requestIdOf(response);
    let shown = "";
    await until(async () => {
      shown = (await sluice.cli("request", "show", id)).stdout;
      return /^attempt 1/m.test(shown);
    }, 10_000);
    expect(shown).toContain("temperature must be in [0, 1], got 2.0. You wrote '…' with <secret>");
    const receipt = await sluice.fetch(`/v1/service/requests/${id}`);
    expect(await receipt.text()).not.toContain("You wrote");
    await until(() => sluice.stderr().includes(id), 5_000);
    expect(sluice.stderr()).not.toContain("You wrote");
  });

  test("is in the record with its status when the engine fails, too", async () => {
    const error = { message: "CUDA out of memory; prompt was 'private words'" };
    answer = () => Response.json({ error }, { status: 500 });
    const response = await chat("own");
    expect(response.status).toBe(503);
    const id = requestIdOf(response);
    let shown: Json = {};
    await until(async () => {
      shown = await sluice.json<Json>("request", "show", id);
      return shown.outcome === "failed";
    }, 10_000);
    const said = "CUDA out of memory; prompt was '…'";
    const { tried } = shown.route as { tried: Json[] };
    expect(tried[0]).toMatchObject({ upstream: "own", outcome: "failed", status: 500, said });
    expect(await (await sluice.fetch(`/v1/service/requests/${id}`)).text()).not.toContain("CUDA");
    expect((await sluice.cli("request", "show", id)).stdout).toContain(`failed (500)`);
  });
});
