// The engine of the bench, in a process of its own. It speaks all three protocols, sends thousands of concurrent
// streams at fixed intervals, and behaves as the name of the model says. Prints its port.

import {
  type Behaviour,
  behaviourOf,
  asked as everything,
  type Protocol,
  pathOf,
  tagLength,
  tagPrefix,
  textOf,
  vectorOf,
  word,
} from "./asks.ts";

const encoder = new TextEncoder();
const frame = (data: object) => `${"type" in data ? `event: ${data.type}\n` : ""}data: ${JSON.stringify(data)}\n\n`;

/**
 * The functions that write a protocol's responses. `at` is a token's index, from 0, and `asked` is the body of the
 * request.
 */
interface Wire {
  whole(model: string, text: string, behaviour: Behaviour, asked: string): object;
  begin(model: string, behaviour: Behaviour, asked: string): string;
  token(model: string, text: string, at: number): string;
  end(model: string, text: string, behaviour: Behaviour, asked: string): string;
}

const chatUsage = ({ inputTokens, tokens }: Behaviour) => ({
  prompt_tokens: inputTokens,
  completion_tokens: tokens,
  total_tokens: inputTokens + tokens,
});
const usage = ({ inputTokens, tokens }: Behaviour) => ({ input_tokens: inputTokens, output_tokens: tokens });

/** A chunk in the format of vLLM. */
const chunk = (model: string, delta: object, finish_reason: string | null) => ({
  ...{ id: "chatcmpl-0", object: "chat.completion.chunk", created: 1, model },
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
});

const chat: Wire = {
  whole: (model, content, behaviour) => ({
    ...{ id: "chatcmpl-0", object: "chat.completion", created: 1, model },
    choices: [{ index: 0, message: { role: "assistant", content }, logprobs: null, finish_reason: "stop" }],
    usage: chatUsage(behaviour),
  }),
  begin: (model) => frame(chunk(model, { role: "assistant", content: "" }, null)),
  token: (model, content) => frame(chunk(model, { content }, null)),
  end: (model, _, behaviour) =>
    frame(chunk(model, {}, "stop")) +
    frame({ ...chunk(model, {}, null), choices: [], usage: chatUsage(behaviour) }) +
    "data: [DONE]\n\n",
};

const messages: Wire = {
  whole: (model, text, behaviour) => ({
    ...{ id: "msg_0", type: "message", role: "assistant", model, content: [{ type: "text", text }] },
    ...{ stop_reason: "end_turn", stop_sequence: null, usage: usage(behaviour) },
  }),
  begin: (model, behaviour) =>
    frame({
      type: "message_start",
      message: {
        ...{ id: "msg_0", type: "message", role: "assistant", model, content: [] },
        ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: behaviour.inputTokens, output_tokens: 1 } },
      },
    }) + frame({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  token: (_, text) => frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  end: (_, __, behaviour) =>
    frame({ type: "content_block_stop", index: 0 }) +
    frame({
      ...{ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null } },
      usage: usage(behaviour),
    }) +
    frame({ type: "message_stop" }),
};

const place = { item_id: "msg_0", output_index: 0, content_index: 0 };
const item = (text: string | null) => ({
  ...{ id: "msg_0", type: "message", role: "assistant", status: text === null ? "in_progress" : "completed" },
  content: text === null ? [] : [{ type: "output_text", text, annotations: [] }],
});
/**
 * The fields of the request that OpenAI and vLLM repeat in each object of a response. They are most of the bytes of a
 * response to an agent.
 */
function repeatedOf(asked: string): object {
  const { instructions = null, tools = [] } = JSON.parse(asked);
  return { instructions, tools };
}

const response = (model: string, text: string | null, behaviour: Behaviour, asked: string) => ({
  ...repeatedOf(asked),
  ...{ id: "resp_0", object: "response", created_at: 1, model, status: text === null ? "in_progress" : "completed" },
  output: text === null ? [] : [item(text)],
  usage: text === null ? null : { ...usage(behaviour), total_tokens: behaviour.inputTokens + behaviour.tokens },
});
const numbered = (sequence_number: number, type: string, more: object) => frame({ type, sequence_number, ...more });

const responses: Wire = {
  whole: response,
  begin: (model, behaviour, asked) => {
    const begun = response(model, null, behaviour, asked);
    return (
      numbered(0, "response.created", { response: begun }) +
      numbered(1, "response.in_progress", { response: begun }) +
      numbered(2, "response.output_item.added", { output_index: 0, item: item(null) }) +
      numbered(3, "response.content_part.added", { ...place, part: { type: "output_text", text: "", annotations: [] } })
    );
  },
  token: (_, delta, at) => numbered(4 + at, "response.output_text.delta", { ...place, delta, logprobs: [] }),
  end: (model, text, behaviour, asked) =>
    numbered(4 + behaviour.tokens, "response.output_text.done", { ...place, text, logprobs: [] }) +
    numbered(5 + behaviour.tokens, "response.content_part.done", {
      ...place,
      part: { type: "output_text", text, annotations: [] },
    }) +
    numbered(6 + behaviour.tokens, "response.output_item.done", { output_index: 0, item: item(text) }) +
    numbered(7 + behaviour.tokens, "response.completed", { response: response(model, text, behaviour, asked) }),
};

export const wires: Record<Protocol, Wire> = { chat, messages, responses };

const embedded = (model: string, tag: string, { inputTokens }: Behaviour) => ({
  ...{ object: "list", model, usage: { prompt_tokens: inputTokens, total_tokens: inputTokens } },
  data: [{ object: "embedding", index: 0, embedding: vectorOf(tag) }],
});

export function startEngine() {
  /** The frames of tokens that all streams of a model share. The key consists of the protocol and the model's name. */
  const shared = new Map<string, Uint8Array[]>();
  const sharedOf = (protocol: Protocol, model: string, { tokens }: Behaviour) => {
    const name = `${protocol} ${model}`;
    const made =
      shared.get(name) ??
      Array.from({ length: tokens }, (_, at) => encoder.encode(wires[protocol].token(model, word, at)));
    shared.set(name, made);
    return made;
  };

  const streamed = (protocol: Protocol, model: string, tag: string, asked: string) => {
    const wire = wires[protocol];
    const behaviour = behaviourOf(model);
    const frames = sharedOf(protocol, model, behaviour);
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const wait_ms = at === 0 ? behaviour.wait_ms : behaviour.every_ms;
        if (wait_ms > 0) await Bun.sleep(wait_ms);
        if (at === 0) {
          controller.enqueue(encoder.encode(wire.begin(model, behaviour, asked) + wire.token(model, tag, 0)));
        } else if (at < behaviour.tokens) {
          controller.enqueue(frames[at]!);
        } else {
          controller.enqueue(encoder.encode(wire.end(model, textOf(tag, behaviour), behaviour, asked)));
          controller.close();
        }
        at += 1;
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

  return Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 120 },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const protocol = everything.find((name) => pathOf[name] === pathname);
      const asked = await request.text();
      const model = /"model":"([^"]+)"/.exec(asked)?.[1];
      const tagAt = asked.indexOf(tagPrefix);
      if (!protocol || !model || tagAt < 0) return new Response("not of this bench", { status: 404 });
      const tag = asked.slice(tagAt, tagAt + tagLength);
      if (asked.includes('"stream":true') && protocol !== "embeddings") return streamed(protocol, model, tag, asked);
      const behaviour = behaviourOf(model);
      if (behaviour.wait_ms > 0) await Bun.sleep(behaviour.wait_ms);
      if (protocol === "embeddings") return Response.json(embedded(model, tag, behaviour));
      return Response.json(wires[protocol].whole(model, textOf(tag, behaviour), behaviour, asked));
    },
  });
}

if (import.meta.main) console.log(startEngine().port);
