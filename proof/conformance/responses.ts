/** The rules of Responses, from OpenAI's API reference. */
import { weather } from "./chat.ts";
import { type Exchange, parsed } from "./exchange.ts";
import { at, type Case, excerpt, isA, kinds, list, oneOf, type Rule, rule, type Suite, streams } from "./rule.ts";

const path = "/responses";
const input = "Say hello in one short sentence.";
const asksForTool = {
  input: "What is the weather in Paris? Use the tool.",
  tools: [{ type: "function", ...weather, strict: true }],
  tool_choice: { type: "function", name: weather.name },
};

export function responsesSuite(model: string): Suite {
  const post = (body: unknown) => ({ method: "POST" as const, path, body });
  const request = (more: object) => post({ model, input, max_output_tokens: 64, store: false, ...more });
  return {
    protocol: "Responses",
    source: "OpenAI API reference, Responses",
    cases: [
      { name: "an answer", request: request({}), status: [200], rules: answerRules },
      { name: "a stream", request: request({ stream: true }), status: [200], rules: [...streamRules, textOfDeltas] },
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

const statuses = ["completed", "incomplete"];

const answerRules: Rule[] = [
  oneOf("object", ["response"]),
  isA("text", "id"),
  isA("text", "model"),
  isA("whole number", "created_at"),
  oneOf("status", statuses),
  rule("output", "each item of `output` has a type and an id", ({ json }) => {
    const output = at(json, "output");
    if (!Array.isArray(output) || output.length === 0) return `\`output\` is ${excerpt(output)}`;
    const wrong = output.find((item) => !kinds.text(at(item, "type")) || !kinds.text(at(item, "id")));
    return wrong === undefined ? null : `one is ${excerpt(wrong)}`;
  }),
  rule("usage", "`usage` has three counts, and the third is their sum", ({ json }) => {
    const counts = ["input_tokens", "output_tokens", "total_tokens"].map((name) => at(json, `usage.${name}`));
    const [read, written, total] = counts as number[];
    const isSum = counts.every(kinds["whole number"]) && read! + written! === total;
    return isSum ? null : `\`usage\` is ${excerpt(at(json, "usage"))}`;
  }),
];

const eventsOf = ({ messages }: Exchange) =>
  messages.map(({ data }) => parsed(data)).filter((one) => one !== undefined);
const ofType = (exchange: Exchange, type: string) => eventsOf(exchange).filter((event) => at(event, "type") === type);

const streamRules: Rule[] = [
  streams(["[DONE]"]),
  rule("event names", "the name of each event is the `type` of its data", ({ messages }) => {
    const wrong = messages.find(({ event, data }) => data !== "[DONE]" && event !== at(parsed(data), "type"));
    return wrong ? `the event ${excerpt(wrong.event)} has ${excerpt(at(parsed(wrong.data), "type"))}` : null;
  }),
  rule("sequence", "`sequence_number` counts the events from 0", (exchange) => {
    const wrong = eventsOf(exchange).findIndex((event, index) => at(event, "sequence_number") !== index);
    return wrong < 0 ? null : `that of event ${wrong} is ${excerpt(at(eventsOf(exchange)[wrong], "sequence_number"))}`;
  }),
  rule("begin and end", "the first event is `response.created`, and the last has the whole response", (exchange) => {
    const events = eventsOf(exchange);
    if (at(events[0], "type") !== "response.created") return `the first is ${excerpt(at(events[0], "type"))}`;
    const last = events.at(-1);
    const ends = statuses.map((status) => `response.${status}`);
    if (!ends.includes(String(at(last, "type")))) return `the last is ${excerpt(at(last, "type"))}`;
    return kinds.object(at(last, "response.usage")) ? null : "its response has no usage";
  }),
  rule("items", "each item that is added is done, under the same index and id", (exchange) => {
    const key = (event: unknown) => `${at(event, "output_index")} ${at(event, "item.id")}`;
    const added = ofType(exchange, "response.output_item.added").map(key);
    const done = ofType(exchange, "response.output_item.done").map(key);
    return added.length > 0 && added.join() === done.join() ? null : `added: ${added}; done: ${done}`;
  }),
];

const textOfDeltas = rule("text", "the deltas of a text are the text that is done", (exchange) => {
  for (const done of ofType(exchange, "response.output_text.done")) {
    const text = ofType(exchange, "response.output_text.delta")
      .filter((event) => at(event, "item_id") === at(done, "item_id"))
      .map((event) => at(event, "delta"))
      .join("");
    if (text !== at(done, "text")) return `the deltas are ${excerpt(text)}, the text is ${excerpt(at(done, "text"))}`;
  }
  return null;
});

function callProblem(call: unknown): string | null {
  const given = at(call, "arguments");
  const isObject = typeof given === "string" && kinds.object(parsed(given));
  const isRight = kinds.text(at(call, "call_id")) && at(call, "name") === weather.name && isObject;
  return isRight ? null : `the item is ${excerpt(call)}`;
}

const toolRules: Rule[] = [
  rule("function call", "the tool that was required is called, with arguments that are a JSON object", ({ json }) =>
    callProblem(list(at(json, "output")).find((item) => at(item, "type") === "function_call")),
  ),
];

const streamedTool = rule(
  "function call in a stream",
  "the deltas of the arguments are those of the item that is done",
  (exchange) => {
    const items = ofType(exchange, "response.output_item.done").map((event) => at(event, "item"));
    const call = items.find((item) => at(item, "type") === "function_call");
    const given = ofType(exchange, "response.function_call_arguments.delta")
      .map((event) => at(event, "delta"))
      .join("");
    if (given !== at(call, "arguments")) return `the deltas are ${excerpt(given)}, the item is ${excerpt(call)}`;
    return callProblem(call);
  },
);

function faultCases(model: string, post: (body: unknown) => Case["request"]): Case[] {
  const rules = [isA("text", "error.message"), isA("text", "error.type")];
  const fault = (name: string, body: unknown, status: readonly number[]) => ({
    name,
    request: post(body),
    status,
    rules,
  });
  return [
    fault("a body that is no JSON", "{", [400]),
    fault("a text for a number", { model, input, temperature: "hot" }, [400, 422]),
    fault("a model that isn't there", { model: "no-such-model-4711", input }, [404, 400]),
    fault("an answer before it that isn't there", { model, input, previous_response_id: "resp_4711" }, [400, 404]),
    {
      ...fault("a request without a key", { model, input }, [401, 403]),
      request: { ...post({ model, input }), anonymous: true },
    },
  ];
}
