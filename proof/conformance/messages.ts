/** The rules of Messages, from Anthropic's API reference. */
import { weather } from "./chat.ts";
import { type Exchange, parsed } from "./exchange.ts";
import { at, type Case, excerpt, isA, kinds, list, oneOf, type Rule, rule, type Suite, streams } from "./rule.ts";

const path = "/messages";
const headers = { "anthropic-version": "2023-06-01" };
const greeting = [{ role: "user", content: "Say hello in one short sentence." }];
const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"];
const asksForTool = {
  messages: [{ role: "user", content: "What is the weather in Paris? Use the tool." }],
  tools: [{ name: weather.name, description: weather.description, input_schema: weather.parameters }],
  tool_choice: { type: "tool", name: weather.name },
};

export function messagesSuite(model: string): Suite {
  const post = (body: unknown, at_path = path) => ({ method: "POST" as const, path: at_path, headers, body });
  const request = (more: object) => post({ model, messages: greeting, max_tokens: 64, ...more });
  return {
    protocol: "Messages",
    source: "Anthropic API reference, Messages",
    cases: [
      { name: "an answer", request: request({}), status: [200], rules: answerRules },
      { name: "a stream", request: request({ stream: true }), status: [200], rules: streamRules },
      { name: "an answer of one token", request: request({ max_tokens: 1 }), status: [200], rules: cappedRules },
      { name: "a tool", request: request(asksForTool), status: [200], rules: toolRules, needs: "tools" },
      {
        name: "a tool in a stream",
        request: request({ ...asksForTool, stream: true }),
        status: [200],
        rules: [...streamRules, streamedTool],
        needs: "tools",
      },
      {
        name: "counting tokens",
        request: post({ model, messages: greeting }, `${path}/count_tokens`),
        status: [200],
        rules: [isA("whole number", "input_tokens")],
        needs: "counting tokens",
      },
      ...faultCases(model, post),
    ],
  };
}

const answerRules: Rule[] = [
  oneOf("type", ["message"]),
  oneOf("role", ["assistant"]),
  isA("text", "id"),
  isA("text", "model"),
  isA("list", "content"),
  oneOf("stop_reason", stopReasons),
  isA("whole number", "usage.input_tokens"),
  isA("whole number", "usage.output_tokens"),
];

const cappedRules: Rule[] = [oneOf("stop_reason", ["max_tokens"]), oneOf("usage.output_tokens", [1])];

const eventsOf = ({ messages }: Exchange) => messages.map(({ data }) => parsed(data));

/** The types of the events in their order, without pings, which may be anywhere. */
function typesOf(exchange: Exchange): string[] {
  return eventsOf(exchange)
    .map((event) => String(at(event, "type")))
    .filter((type) => type !== "ping");
}

const order =
  /^message_start( content_block_start( content_block_delta)* content_block_stop)*( message_delta)+ message_stop$/;

const streamRules: Rule[] = [
  streams(),
  rule("event names", "the name of each event is the `type` of its data", ({ messages }) => {
    const wrong = messages.find(({ event, data }) => event !== at(parsed(data), "type"));
    return wrong ? `the event ${excerpt(wrong.event)} has ${excerpt(at(parsed(wrong.data), "type"))}` : null;
  }),
  rule("order", "a message starts, its blocks follow one after another, and it stops", (exchange) => {
    const types = typesOf(exchange).join(" ");
    return order.test(types) ? null : `the events are ${types.slice(0, 300)}`;
  }),
  rule("indexes", "blocks are counted from 0, and each event of a block has its index", (exchange) => {
    let open = -1;
    for (const event of eventsOf(exchange)) {
      if (at(event, "type") === "content_block_start") open += 1;
      if (String(at(event, "type")).startsWith("content_block") && at(event, "index") !== open)
        return `the index of block ${open} is ${excerpt(at(event, "index"))}`;
    }
    return null;
  }),
  rule(
    "usage in a stream",
    "`message_start` has the input tokens, and `message_delta` the output tokens",
    (exchange) => {
      const events = eventsOf(exchange);
      const of = (type: string) => events.find((event) => at(event, "type") === type);
      const input = at(of("message_start"), "message.usage.input_tokens");
      const output = at(of("message_delta"), "usage.output_tokens");
      return kinds["whole number"](input) && kinds["whole number"](output)
        ? null
        : `they are ${excerpt(input)} and ${excerpt(output)}`;
    },
  ),
];

const toolRules: Rule[] = [
  oneOf("stop_reason", ["tool_use"]),
  rule("tool use", "the tool that was required is used, with an object as its input", ({ json }) => {
    const block = list(at(json, "content")).find((one) => at(one, "type") === "tool_use");
    const isRight =
      kinds.text(at(block, "id")) && at(block, "name") === weather.name && kinds.object(at(block, "input"));
    return isRight ? null : `the block is ${excerpt(block)}`;
  }),
];

const streamedTool = rule(
  "tool use in a stream",
  "a block starts with the tool's id and name, and its deltas are one JSON object",
  (exchange) => {
    const events = eventsOf(exchange);
    const start = events.find((event) => at(event, "content_block.type") === "tool_use");
    if (at(start, "content_block.name") !== weather.name) return `the block is ${excerpt(at(start, "content_block"))}`;
    const input = events
      .filter((event) => at(event, "index") === at(start, "index") && at(event, "delta.type") === "input_json_delta")
      .map((event) => at(event, "delta.partial_json"))
      .join("");
    return kinds.object(parsed(input)) ? null : `the input is ${excerpt(input)}`;
  },
);

function faultCases(model: string, post: (body: unknown) => Case["request"]): Case[] {
  const fault = (name: string, body: unknown, status: readonly number[], type: string) => ({
    name,
    request: post(body),
    status,
    rules: [oneOf("type", ["error"]), oneOf("error.type", [type]), isA("text", "error.message")],
  });
  const bare = { model, messages: greeting };
  return [
    fault("a body that is no JSON", "{", [400], "invalid_request_error"),
    fault("a body without max_tokens", bare, [400], "invalid_request_error"),
    fault("a text for a number", { ...bare, max_tokens: "many" }, [400], "invalid_request_error"),
    fault(
      "a model that isn't there",
      { ...bare, model: "no-such-model-4711", max_tokens: 8 },
      [404],
      "not_found_error",
    ),
    {
      ...fault("a request without a key", { ...bare, max_tokens: 8 }, [401], "authentication_error"),
      request: { ...post({ ...bare, max_tokens: 8 }), anonymous: true },
    },
  ];
}
