/**
 * Requests of chat and Responses clients for Anthropic's API: what it has rules about, and those clients' own services do
 * not, is fitted to its rules. A request of its own clients stays as it is.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import type { Loss } from "../../../../src/core/protocol/codec.ts";
import { type DialectName, dialects } from "../../../../src/core/protocol/dialects.ts";
import { callers, upstreams } from "../codecs.ts";

type Body = Record<string, unknown>;
type Message = { role: string; content: { text: string }[] };

const model = "acme/one";
const hi = [{ role: "user", content: "hi" }];
const chat = (more: object) => callers.chat.request.decode({ model, messages: hi, ...more } as never);
const messages = (more: object) =>
  callers.messages.request.decode({ model, max_tokens: 100, messages: hi, ...more } as never);
const responses = (more: object) => callers.responses.request.decode({ model, input: "hi", ...more } as never);

function encoded(request: InferenceRequest, name: DialectName = "anthropic") {
  const lost: Loss[] = [];
  const ask = { model: "m", stream: false, outputTokens_max: 4096, dialect: dialects[name] };
  const body = upstreams.messages.request.encode(request, { ...ask, lost: (loss) => void lost.push(loss) });
  return { body: JSON.parse(JSON.stringify(body)) as Body, lost };
}

const says = (role: string, text: string) => ({ role, content: text });

describe("a schema that is enforced", () => {
  const score = { type: "integer", description: "From 1 on.", minimum: 1, exclusiveMaximum: 10 };
  const tags = { type: "array", items: { type: "object", properties: { format: {} } }, minItems: 2, uniqueItems: true };
  const at = { type: "string", format: "date" };
  const schema = {
    type: "object",
    properties: { score, at, minimum: { minLength: 1, format: "phone" }, tags: { anyOf: [tags, { type: "null" }] } },
    required: ["score"],
  };
  const told = (description: string) => expect.stringContaining(description) as string;
  const fits = {
    type: "object",
    properties: {
      score: { type: "integer", description: 'From 1 on.\n\n{"minimum":1,"exclusiveMaximum":10}' },
      at,
      minimum: { description: '{"minLength":1,"format":"phone"}' },
      tags: {
        anyOf: [
          {
            type: "array",
            items: { type: "object", properties: { format: {} }, additionalProperties: false },
            description: told('{"minItems":2,"uniqueItems":true}'),
          },
          { type: "null" },
        ],
      },
    },
    required: ["score"],
    additionalProperties: false,
  };
  const format = { type: "json_schema", name: "n", schema };
  const asked = [
    chat({ response_format: { type: format.type, json_schema: format } }),
    responses({ text: { format } }),
    messages({ output_config: { format } }),
  ];

  test("has closed objects, and in words what it refuses, for clients of other protocols", () => {
    const [byChat, byResponses, byMessages] = asked.map((request) => encoded(request).body.output_config as Body);
    for (const sent of [byChat, byResponses]) expect(sent).toEqual({ format: { type: format.type, schema: fits } });
    expect(byMessages).toEqual({ format: { type: format.type, schema } });
    expect(encoded(asked[0]!, "vllm").body.output_config).toEqual(byMessages);
  });

  test("has no object that is open to some properties or to all, and no choice of exactly one", () => {
    const ages = { type: "object", additionalProperties: { type: "integer" } };
    const open = { type: "object", properties: { at }, additionalProperties: true, description: "More." };
    const choice = { type: "object", properties: { one: { oneOf: [ages, open] } }, additionalProperties: false };
    const asks = chat({ response_format: { type: format.type, json_schema: { ...format, schema: choice } } });
    const shut = { additionalProperties: false };
    const anyOf = [
      { type: "object", description: '{"additionalProperties":{"type":"integer"}}', ...shut },
      { type: "object", properties: { at }, description: 'More.\n\n{"additionalProperties":true}', ...shut },
    ];
    const sent = (encoded(asks).body.output_config as { format: Body }).format.schema;
    expect(sent).toEqual({ type: "object", properties: { one: { anyOf } }, ...shut });
  });

  test("may be that of a tool, if the tool is strict", () => {
    const tools = [true, false].map((strict, at) => ({
      type: "function",
      function: { name: `t${at}`, parameters: schema, strict },
    }));
    const sent = encoded(chat({ tools })).body.tools as Body[];
    expect(sent.map(({ input_schema }) => input_schema)).toEqual([fits, schema]);
  });
});

test("of temperature and top_p, which its models refuse together, one that changes nothing is left out", () => {
  const sent = (sampling: object, name?: DialectName, ask = chat) => {
    const { temperature, top_p } = encoded(ask(sampling), name).body;
    return { temperature, top_p };
  };
  const both = { temperature: 0.2, top_p: 1 };
  expect(sent(both)).toEqual({ temperature: 0.2, top_p: undefined });
  expect(sent(both, undefined, responses)).toEqual({ temperature: 0.2, top_p: undefined });
  expect(sent({ temperature: 1, top_p: 0.9 })).toEqual({ temperature: undefined, top_p: 0.9 });
  expect(sent({ temperature: 1, top_p: 1 })).toEqual({ temperature: 1, top_p: undefined });
  expect(sent({ temperature: 0.2, top_p: 0.9 })).toEqual({ temperature: 0.2, top_p: 0.9 });
  expect(sent(both, "vllm")).toEqual(both);
  expect(sent(both, undefined, messages)).toEqual(both);
});

test("a conversation that ends with the model's words is asked to go on by the user, and not within a sentence", () => {
  const conversation = [says("user", "A plan?"), says("assistant", "Here is the plan.")];
  const sent = (request: InferenceRequest, name?: DialectName) => encoded(request, name).body.messages as Message[];
  const asker = { role: "user", content: [{ type: "text", text: "Continue." }] };
  const input = conversation.map((message) => ({ type: "message", ...message }));
  for (const request of [chat({ messages: conversation }), responses({ input })]) {
    expect(sent(request)).toHaveLength(3);
    expect(sent(request).at(-1)).toEqual(asker as never);
    expect(sent(request, "vllm").at(-1)?.role).toBe("assistant");
  }
  expect(sent(messages({ messages: conversation })).at(-1)?.role).toBe("assistant");
  expect(sent({ ...chat({ messages: conversation }), continues: true }).at(-1)?.role).toBe("assistant");
});

test("a question whose answer is still empty is asked as it is", () => {
  const sent = (...turns: object[]) => {
    const request = chat({ messages: [says("user", "A plan?"), ...turns] });
    return (encoded(request).body.messages as Message[]).map(
      ({ role, content }) => `${role}: ${content.map(({ text }) => text).join(", ")}`,
    );
  };
  const thought = { ...says("assistant", ""), reasoning_content: "Hm." };
  for (const empty of [says("assistant", ""), says("assistant", " \n"), thought])
    expect(sent(empty)).toEqual(["user: A plan?"]);
  const answered = ["user: A plan?", "assistant: Here.", "user: Continue."];
  expect(sent(says("assistant", "Here."), says("assistant", ""))).toEqual(answered);
  const asked = chat({ messages: [says("user", "A plan?")] });
  const proven = { kind: "reasoning", text: "Hm.", signature: "proof" } as const;
  const { body } = encoded({ ...asked, turns: [...asked.turns, { role: "assistant", parts: [proven] }] });
  expect((body.messages as Message[]).map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
});

test("a tool that must be called has no effort beside it, with which the model need not call", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const choices = [
    "required",
    { type: "function", function: { name: "f" } },
    { type: "allowed_tools", allowed_tools: { mode: "required", tools } },
  ];
  const sent = (more: object, name?: DialectName) => {
    const { body, lost } = encoded(chat({ tools, reasoning_effort: "low", ...more }), name);
    return { thinking: (body.thinking as Body | undefined)?.type, config: body.output_config, lost };
  };
  const without = { thinking: undefined, config: undefined, lost: ["stripped"] };
  for (const tool_choice of choices) expect(sent({ tool_choice })).toEqual(without as never);
  const kept = { thinking: "adaptive", config: { effort: "low" }, lost: [] };
  for (const tool_choice of ["auto", "none"]) expect(sent({ tool_choice })).toEqual(kept as never);
  expect(sent({ tool_choice: "required" }, "generic")).toEqual(kept as never);
  const off = { thinking: "disabled", config: undefined, lost: [] };
  expect(sent({ tool_choice: "required", reasoning_effort: "none" })).toEqual(off as never);
  const own = { tools: [{ name: "f", input_schema: { type: "object" } }], tool_choice: { type: "any" } };
  expect(encoded(messages({ ...own, thinking: { type: "adaptive" } })).body.thinking).toEqual({ type: "adaptive" });
});

describe("instructions inside a conversation", () => {
  const told = (roles: readonly string[]) => roles.map((role, at) => says(role, `${role} ${at}`));
  const sent = (request: InferenceRequest, name?: DialectName) =>
    (encoded(request, name).body.messages as Message[]).map(
      ({ role, content }) => `${role}: ${content.map(({ text }) => text).join(", ")}`,
    );
  const inside = "<system>\ndeveloper 2\n</system>";

  test("are marked text of the user, in their place: most of its models refuse them, and the others before a user", () => {
    const conversation = told(["user", "assistant", "developer", "user"]);
    const fits = ["user: user 0", "assistant: assistant 1", `user: ${inside}, user 3`];
    expect(sent(chat({ messages: conversation }))).toEqual(fits);
    const input = conversation.map((message) => ({ type: "message", ...message }));
    expect(sent(responses({ input }))).toEqual(fits);
    expect(sent(chat({ messages: told(["user", "user", "developer", "assistant", "user"]) }))).toEqual([
      `user: user 0, user 1, ${inside}`,
      "assistant: assistant 3",
      "user: user 4",
    ]);
    const { body } = encoded(chat({ messages: told(["developer", "user"]) }));
    expect(body.system).toBe("developer 0");
  });

  test("stay instructions at other engines, and those of a Messages client at any", () => {
    const conversation = told(["user", "assistant", "system", "user"]);
    const kept = ["user: user 0", "assistant: assistant 1", "system: system 2", "user: user 3"];
    expect(sent(chat({ messages: conversation }), "vllm")).toEqual(kept);
    for (const name of ["anthropic", "vllm"] as const)
      expect(sent(messages({ messages: conversation }), name)).toEqual(kept);
  });
});
