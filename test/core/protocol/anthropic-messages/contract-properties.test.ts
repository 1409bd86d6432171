import { test } from "bun:test";
import { MessagesRequest } from "../../../../src/core/protocol/anthropic-messages/contract.ts";
import { decodeRequest } from "../../../../src/core/protocol/anthropic-messages/decode-request.ts";
import { validateMessagesRequest } from "../../../../src/core/protocol/anthropic-messages/validate.ts";
import { contract } from "../../../../src/core/protocol/contract.ts";
import { agrees, answersAnyChange, anyChange, changesTo, reachesEngines } from "../changes.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const valid = {
  model: "acme/writer-1",
  max_tokens: 100,
  system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: [{ type: "text", text: "x" }, image] },
    { role: "system", content: "note", output_config: { effort: "low" }, clear_at: "never" },
    {
      role: "system",
      content: [
        { type: "tool_removal", tool: { type: "tool_reference", name: "g" } },
        { type: "tool_addition", tool: { type: "tool_definition", definition: { name: "h", input_schema: {} } } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "tool_use", id: "c", name: "f", input: { x: 1 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "c",
          content: [{ type: "tool_reference", tool_name: "f" }],
          is_error: true,
        },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "d" }, title: "t" },
      ],
    },
  ],
  stream: true,
  temperature: 1,
  stop_sequences: ["a"],
  tools: [
    { name: "f", input_schema: { type: "object" } },
    { name: "g", input_schema: {} },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "tool", name: "f" },
  thinking: { type: "enabled", budget_tokens: 1024 },
  output_config: { effort: "low", format: { type: "json_schema", schema: {} } },
  context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  metadata: { user_id: "u" },
};

const words = [
  ..."user tool system text image document tool_use tool_result tool_addition tool_reference thinking custom auto any none base64 url file c f g h".split(
    " ",
  ),
  "",
];
const mutated = changesTo(valid, { words, keys: ["role", "type", "x", "content", "thread", "container", "tools"] });

test(anyChange, () =>
  answersAnyChange(mutated, (body) => reachesEngines(decodeRequest(validateMessagesRequest(body))), 400),
);

test("the walk finds an offence exactly where the compiled check refuses", () =>
  agrees(contract(MessagesRequest), mutated, 400));
