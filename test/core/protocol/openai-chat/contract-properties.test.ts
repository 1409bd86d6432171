import { test } from "bun:test";
import { contract } from "../../../../src/core/protocol/contract.ts";
import { openaiChatCaller } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { ChatCompletionRequest } from "../../../../src/core/protocol/openai-chat/contract.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import { agrees, answersAnyChange, anyChange, changesTo, reachesEngines } from "../changes.ts";

const valid = {
  model: "acme/writer-1",
  messages: [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "x" },
        { type: "image_url", image_url: { url: "https://x" } },
      ],
    },
    {
      role: "assistant",
      tool_calls: [
        { id: "c", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "d", type: "custom", custom: { name: "g", input: "x" } },
      ],
    },
    { role: "tool", tool_call_id: "c", content: "y" },
  ],
  stream: true,
  stream_options: { include_usage: true },
  temperature: 1,
  stop: ["a"],
  logit_bias: { "5": 1 },
  tools: [
    { type: "function", function: { name: "f", parameters: { type: "object" } } },
    {
      type: "custom",
      custom: { name: "g", format: { type: "grammar", grammar: { syntax: "lark", definition: "d" } } },
    },
  ],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
  reasoning_effort: "low",
};

const words = ["user", "tool", "function", "text", "image_url", "custom", "auto", "json_object", "none", "", "c", "f"];
const mutated = changesTo(valid, { words, keys: ["role", "type", "x", "content", "n"] });

test(anyChange, () =>
  answersAnyChange(
    mutated,
    (body) => reachesEngines(openaiChatCaller.request.decode(validateChatRequest(body, []))),
    3000,
  ),
);

test("the walk finds an offence exactly where the compiled check refuses", () =>
  agrees(contract(ChatCompletionRequest, { topLevel: "closed" }), mutated, 3000));
