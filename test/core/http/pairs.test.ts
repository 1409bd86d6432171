/**
 * Nine pairs over real sockets: clients of three protocols, each with engines of all three. An input that is longer
 * than the model's context is refused, by the service or by the engine, before the answer or in its middle. Agents
 * compact only after exactly these messages, so the tests compare them word for word, and with the patterns by which
 * clients recognize them. A client gets one part of an answer at a time, even if the engine interleaves parts.
 * Reasoning that a Responses engine encrypted is sent back to it.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { words } from "../../harness/engine.ts";
import { startResponsesEngine } from "../../harness/responses-engine.ts";
import { startSluice } from "../../harness/sluice.ts";
import { answerOf, answers, framesOf, kindsTold, messagesOf, orderProblem, orders } from "../protocol/pairs/parts.ts";
import {
  type Answer,
  type ClientName,
  clientNames,
  type EngineName,
  engineNames,
  engines,
  wires,
} from "../protocol/pairs/wires.ts";

setDefaultTimeout(60_000);

const contextTokens = 4096;
const engineWords = "canary-words-of-the-engine";
const plain: Answer = { reasoning: "", text: "Hello there", calls: [], end: "stop" };

const engine = startResponsesEngine();
const upstream = (name: EngineName) =>
  `  canary-${name}: { url: "${engine.url}", protocol: ${engines[name].protocol} }`;
const entry = (name: EngineName) => `
  - id: acme/${name}-1
    created: 1790000000
    context_window: ${contextTokens}
    max_output_tokens: 256
    capabilities: [tools, parallel_tools, reasoning]
    prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }
    routes: [{ upstream: canary-${name}, model: canary-engine-model }]`;
const service = await startSluice({
  config: `upstreams:\n${engineNames.map(upstream).join("\n")}\nmetering: { currency: USD }\nmodels:${engineNames.map(entry).join("")}\nplans: { pro: {} }\n`,
  secrets: [engineWords, "canary-engine-model", new URL(engine.url).host],
  operatorsWords: ["canary-"],
});
afterAll(async () => {
  await service?.stop();
  engine.stop();
});

const post = (caller: ClientName, behind: EngineName, stream: boolean, question = "hello", tools?: string[]) => {
  const asked = wires[caller].body({ instructions: "Be brief.", question, ...(tools && { tools }) });
  return service.post(wires[caller].path, { ...asked, model: `acme/${behind}-1`, stream });
};

const exactly: Record<ClientName, (tokens: number | string, context?: number) => string> = {
  chat: (tokens, context = contextTokens) =>
    `This model's maximum context length is ${context} tokens, and the input of about ${tokens} tokens exceeds the context window. Please reduce the length of the messages. (context_length_exceeded)`,
  messages: (tokens, context = contextTokens) => `prompt is too long: ${tokens} tokens > ${context} maximum`,
  responses: (tokens, context) => exactly.chat(tokens, context),
};

interface Told {
  message: string;
  param?: string | null;
  code?: string;
  details?: { error_code: string };
}

async function refusalOf(response: Response): Promise<Told> {
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: Told };
  return error;
}

/** The error at the end of a stream, in the form of its protocol. */
async function failureOf(caller: ClientName, response: Response): Promise<Told> {
  expect(response.status).toBe(200);
  const text = await response.text();
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
  const last = events.at(-1);
  if (caller === "responses") {
    expect(last.type).toBe("response.failed");
    return last.response.error;
  }
  if (caller === "messages") expect(last.type).toBe("error");
  return last.error;
}

const codeOf = (told: Told) => told.code ?? told.details?.error_code;
const params: Record<ClientName, string | undefined> = { chat: "messages", messages: undefined, responses: "input" };

/** The context that the engine reports; if it does, this number is used rather than the catalog's. */
const enginesTokens = 4000;
/** An engine's own error, with a number of tokens or with none. */
const said = (tokens?: number) =>
  tokens === undefined
    ? { type: "invalid_request_error", message: `${engineWords}: prompt is too long` }
    : {
        type: "invalid_request_error",
        message: `This model's maximum context length is ${enginesTokens} tokens. However, your messages resulted in ${tokens} tokens. ${engineWords}`,
      };
/** The number of tokens in our message if the engine gives no plausible one: one more than the context. */
const least = contextTokens + 1;

describe.each(clientNames)("a %s client", (caller) => {
  test("whose input is far out is told by the service, streamed and not", async () => {
    for (const stream of [true, false]) {
      const told = await refusalOf(await post(caller, "chat", stream, words(6 * contextTokens)));
      const [tokens = Number.NaN] = (/\b(\d+) tokens (?:exceeds|>)/.exec(told.message) ?? []).slice(1).map(Number);
      expect(tokens).toBeGreaterThan(2 * contextTokens);
      expect(told.message).toBe(exactly[caller](tokens));
      expect([codeOf(told), told.param]).toEqual(["context_length_exceeded", params[caller]]);
    }
  });

  describe.each(engineNames)("of a model whose engine speaks %s", (behind) => {
    test.each([
      ["its own number", 5000, 5000, enginesTokens],
      ["no number", undefined, least, contextTokens],
      ["a number that would fit", 100, enginesTokens + 1, enginesTokens],
    ])("is told so before the stream, with %s", async (_, counted, tokens, context) => {
      engine.plays({ status: 400, body: { type: "error", error: said(counted) } });
      for (const stream of [true, false]) {
        const told = await refusalOf(await post(caller, behind, stream));
        expect(told.message).toBe(exactly[caller](tokens, context));
        expect([codeOf(told), told.param]).toEqual(["context_length_exceeded", params[caller]]);
      }
    });

    test("is told so in the middle of an answer", async () => {
      for (const [counted, tokens, context] of [
        [5000, 5000, enginesTokens],
        [undefined, least, contextTokens],
      ] as const) {
        const error = { ...said(counted), ...(behind === "responses" ? { code: "invalid_prompt" } : {}) };
        engine.plays({ stream: engines[behind].broken(plain, error), whole: { type: "error", error } });
        const told = await failureOf(caller, await post(caller, behind, true));
        expect([told.message, codeOf(told)]).toEqual([exactly[caller](tokens, context), "context_length_exceeded"]);
        const whole = await refusalOf(await post(caller, behind, false));
        expect(whole.message).toBe(exactly[caller](tokens, context));
      }
    });

    test.each(Object.keys(orders))("is told of one part at a time: engines tell %s", async (order) => {
      for (const parts of Object.values(answers)) {
        engine.plays({ stream: framesOf(behind, parts, order).join(""), whole: null });
        const response = await post(caller, behind, true, "Go on.", ["f0", "f1", "f2", "f3", "f4"]);
        const frames = messagesOf(await response.text());
        expect(orderProblem[caller](frames)).toBeNull();
        expect(wires[caller].readFrames(frames)).toEqual(answerOf(parts, "tool_calls"));
        const kinds = parts.map(({ kind }) => kind);
        expect(kindsTold[caller](frames) ?? kinds).toEqual(kinds);
      }
    });
  });
});

describe("reasoning that an engine of Responses encrypted", () => {
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
  const posted = (name: ClientName, body: object, stream: boolean) =>
    service.post(wires[name].path, { model: "acme/responses-1", ...body, stream });
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
    const last = stream
      ? JSON.parse(messagesOf(text).findLast(({ data }) => data.startsWith("{"))!.data).response
      : JSON.parse(text);
    const output = last.output as object[];
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
