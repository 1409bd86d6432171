/** The rules of Chat Completions, from OpenAI's API reference. */
import { type Exchange, parsed } from "./exchange.ts";
import { at, type Case, excerpt, isA, kinds, list, oneOf, type Rule, rule, type Suite, streams } from "./rule.ts";

const path = "/chat/completions";
const greeting = [{ role: "user", content: "Say hello in one short sentence." }];
const finishReasons = ["stop", "length", "tool_calls", "content_filter", "function_call"];

export const weather = {
  name: "get_weather",
  description: "Get the weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};
const tools = [{ type: "function", function: weather }];
const asksForTool = {
  messages: [{ role: "user", content: "What is the weather in Paris? Use the tool." }],
  tools,
  tool_choice: { type: "function", function: { name: weather.name } },
};

export function chatSuite(model: string): Suite {
  const post = (body: unknown) => ({ method: "POST" as const, path, body });
  const request = (more: object) => post({ model, messages: greeting, max_tokens: 64, ...more });
  return {
    protocol: "chat completions",
    source: "OpenAI API reference, Chat completions",
    cases: [
      { name: "an answer", request: request({}), status: [200], rules: answerRules },
      {
        name: "a stream with usage",
        request: request({ stream: true, stream_options: { include_usage: true } }),
        status: [200],
        rules: [...streamRules, usageAtTheEnd],
      },
      {
        name: "a stream without usage",
        request: request({ stream: true }),
        status: [200],
        rules: [...streamRules, noUsage],
      },
      { name: "an answer of one token", request: request({ max_tokens: 1 }), status: [200], rules: [capped] },
      { name: "a tool", request: request(asksForTool), status: [200], rules: toolRules, needs: "tools" },
      {
        name: "a tool in a stream",
        request: request({ ...asksForTool, stream: true }),
        status: [200],
        rules: [...streamRules, streamedTool],
        needs: "tools",
      },
      ...faultCases(model, post),
    ],
  };
}

const answerRules: Rule[] = [
  oneOf("object", ["chat.completion"]),
  isA("text", "id"),
  isA("text", "model"),
  isA("whole number", "created"),
  oneOf("choices.0.index", [0]),
  oneOf("choices.0.message.role", ["assistant"]),
  oneOf("choices.0.finish_reason", finishReasons),
  rule("content", "`message.content` is a text, or null beside something else", ({ json }) => {
    const message = at(json, "choices.0.message");
    const content = at(message, "content");
    if (typeof content === "string") return null;
    const other = ["tool_calls", "refusal", "reasoning_content", "reasoning"].some((name) => at(message, name));
    return content === null && other ? null : `\`message.content\` is ${excerpt(content)}`;
  }),
  rule("usage", "`usage` has three counts, and the third is their sum", ({ json }) => usageProblem(at(json, "usage"))),
];

function usageProblem(usage: unknown): string | null {
  const counts = ["prompt_tokens", "completion_tokens", "total_tokens"].map((name) => at(usage, name));
  const [prompt, completion, total] = counts as number[];
  const isSum = counts.every(kinds["whole number"]) && prompt! + completion! === total;
  return isSum ? null : `\`usage\` is ${excerpt(usage)}`;
}

/** The parsed chunks of a stream, without the final `[DONE]`. */
function chunksOf({ messages }: Exchange): unknown[] {
  return messages.map(({ data }) => parsed(data)).filter((value) => value !== undefined);
}

const choicesOf = (exchange: Exchange) => chunksOf(exchange).flatMap((chunk) => list(at(chunk, "choices")));

const streamRules: Rule[] = [
  streams(["[DONE]"]),
  rule("end", "the stream ends with one `[DONE]`", ({ messages }) => {
    const places = messages.flatMap(({ data }, index) => (data === "[DONE]" ? [index] : []));
    if (places.length !== 1) return `there are ${places.length}`;
    return places[0] === messages.length - 1 ? null : "messages follow it";
  }),
  rule("chunks", "each chunk is a `chat.completion.chunk` of one id", (exchange) => {
    const chunks = chunksOf(exchange);
    const wrong = chunks.find((chunk) => at(chunk, "object") !== "chat.completion.chunk");
    if (wrong !== undefined) return `one is ${excerpt(wrong)}`;
    const ids = new Set(chunks.map((chunk) => at(chunk, "id")));
    return ids.size === 1 ? null : `there are ${ids.size} ids`;
  }),
  rule("role", "the first delta says that the assistant speaks", (exchange) => {
    const first = at(choicesOf(exchange)[0], "delta");
    return at(first, "role") === "assistant" ? null : `it is ${excerpt(first)}`;
  }),
  rule("finish", "there is one finish reason, and no content after it", (exchange) => {
    const choices = choicesOf(exchange);
    const ends = choices.flatMap((choice, index) => (at(choice, "finish_reason") ? [index] : []));
    if (ends.length !== 1) return `there are ${ends.length}`;
    const reason = at(choices[ends[0]!], "finish_reason");
    if (!finishReasons.includes(reason as string)) return `it is ${excerpt(reason)}`;
    return choices.slice(ends[0]! + 1).some((choice) => at(choice, "delta.content")) ? "content follows it" : null;
  }),
];

const usageAtTheEnd = rule(
  "usage in a stream",
  "one chunk without choices has the usage, after all others, and theirs is null or absent",
  (exchange) => {
    const chunks = chunksOf(exchange);
    const places = chunks.flatMap((chunk, index) => (at(chunk, "usage") ? [index] : []));
    if (places.length !== 1) return `${places.length} chunks have a usage`;
    const chunk = chunks[places[0]!];
    if (places[0] !== chunks.length - 1) return "chunks follow it";
    if (list(at(chunk, "choices")).length > 0) return "it has choices";
    return usageProblem(at(chunk, "usage"));
  },
);

const noUsage = rule("no usage unasked", "no chunk has a usage that nobody asked for", (exchange) => {
  const chunk = chunksOf(exchange).find((value) => at(value, "usage"));
  return chunk === undefined ? null : `one is ${excerpt(chunk)}`;
});

const capped = rule(
  "cap",
  "an answer of `max_tokens` 1 has one token, and its finish reason is `length`",
  ({ json }) => {
    const tokens = at(json, "usage.completion_tokens");
    const reason = at(json, "choices.0.finish_reason");
    return tokens === 1 && reason === "length" ? null : `it has ${excerpt(tokens)}, and ends with ${excerpt(reason)}`;
  },
);

/**
 * Checks the ID, the name and the arguments of a tool call, from a stream or an unstreamed response. Returns the
 * problem, or null.
 */
function callProblem(id: unknown, name: unknown, given: unknown): string | null {
  if (!kinds.text(id)) return `the call's id is ${excerpt(id)}`;
  if (name !== weather.name) return `the call's name is ${excerpt(name)}`;
  const isObject = typeof given === "string" && kinds.object(parsed(given));
  return isObject ? null : `the arguments are ${excerpt(given)}`;
}

const toolRules: Rule[] = [
  rule("tool call", "the tool that was required is called, with arguments that are a JSON object", ({ json }) => {
    const call = at(json, "choices.0.message.tool_calls.0");
    if (at(call, "type") !== "function") return `the call is ${excerpt(call)}`;
    return callProblem(at(call, "id"), at(call, "function.name"), at(call, "function.arguments"));
  }),
  oneOf("choices.0.finish_reason", ["tool_calls", "stop"]),
];

const streamedTool = rule(
  "tool call in a stream",
  "the first delta of a call has its id and name, and the arguments of all deltas are one JSON object",
  (exchange) => {
    const deltas = choicesOf(exchange).flatMap((choice) => list(at(choice, "delta.tool_calls")));
    const first = deltas.find((delta) => at(delta, "index") === 0);
    const given = deltas
      .filter((delta) => at(delta, "index") === 0)
      .map((delta) => at(delta, "function.arguments") ?? "")
      .join("");
    return callProblem(at(first, "id"), at(first, "function.name"), given);
  },
);

/** The fields of an error that OpenAI's clients read; `param` and `code` may be null. */
const faultRules: Rule[] = [
  isA("text", "error.message"),
  isA("text", "error.type"),
  rule("error fields", "the error has `param` and `code`, which may be null", ({ json }) => {
    const missing = ["param", "code"].filter((name) => at(json, `error.${name}`) === undefined);
    return missing.length === 0 ? null : `${missing.join(" and ")} is missing`;
  }),
];

function faultCases(model: string, post: (body: unknown) => Case["request"]): Case[] {
  const fault = (name: string, body: unknown, status: readonly number[]) => ({
    name,
    request: post(body),
    status,
    rules: faultRules,
  });
  return [
    fault("a body that is no JSON", "{", [400]),
    fault("a body without messages", { model }, [400, 422]),
    fault("a text for a number", { model, messages: greeting, temperature: "hot" }, [400, 422]),
    fault("a model that isn't there", { model: "no-such-model-4711", messages: greeting }, [404, 400]),
    {
      ...fault("a request without a key", { model, messages: greeting }, [401, 403]),
      request: { ...post({ model, messages: greeting }), anonymous: true },
    },
  ];
}
