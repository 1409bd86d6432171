/**
 * For each use that requires a capability (inference/needs.ts) and each field that docs/protocols.md names for it: a
 * body that has the field, and the field's path.
 */

import type { Use } from "../../../../src/core/inference/needs.ts";
import type { Capability } from "../../../../src/core/inference/request.ts";
import type { ClientName } from "../pairs/wires.ts";
import { assistant, png, says, text, user } from "./probe.ts";

type Fields<Told> = Partial<Record<ClientName, Record<string, Told>>>;
type Asking = [body: object, param: string];

const input = (...items: unknown[]) => ({ input: items });
const shown = (part: object) => input({ role: "user", content: [{ type: "input_text", text: "a" }, part] });
const chatTool = { type: "function", function: { name: "f" } };
const messagesTool = { name: "f", input_schema: { type: "object" } };
const responsesTool = { type: "function", name: "f" };
const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
const called = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
const custom = { type: "custom_tool_call", call_id: "c1", name: "f", input: "x" };
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" } };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const schema = { type: "json_schema", schema: {} };

export const needProbes: Record<Use, Fields<Asking>> = {
  tool: {
    chat: { tools: [{ tools: [chatTool] }, "tools"] },
    messages: {
      tools: [{ tools: [messagesTool] }, "tools"],
      tool_addition: [
        says(user(text("a")), {
          role: "system",
          content: [{ type: "tool_addition", tool: { type: "tool_definition", definition: messagesTool } }],
        }),
        "messages[1].content[0].tool.definition",
      ],
    },
    responses: {
      tools: [{ tools: [responsesTool] }, "tools"],
      additional_tools: [input({ type: "additional_tools", tools: [responsesTool] }), "input[0]"],
    },
  },
  "call or result": {
    chat: {
      tool_calls: [
        says(
          user(text("a")),
          { role: "assistant", tool_calls: [call] },
          { role: "tool", tool_call_id: "c1", content: "x" },
        ),
        "messages[1].tool_calls",
      ],
    },
    messages: {
      tool_use: [
        says(user(text("a")), assistant({ type: "tool_use", id: "c1", name: "f", input: {} })),
        "messages[1].content",
      ],
    },
    responses: {
      function_call: [input({ role: "user", content: "a" }, called), "input[1]"],
      custom_tool_call: [input({ role: "user", content: "a" }, custom), "input[1]"],
    },
  },
  image: {
    chat: {
      image_url: [
        says(user(text("a"), { type: "image_url", image_url: { url: "https://a" } })),
        "messages[0].content[1]",
      ],
    },
    messages: { image: [says(user(text("a"), image)), "messages[0].content[1]"] },
    responses: { input_image: [shown({ type: "input_image", image_url: "https://a" }), "input[0].content[1]"] },
  },
  file: {
    chat: {
      file: [says(user(text("a"), { type: "file", file: { file_data: "JVBERi0x" } })), "messages[0].content[1]"],
    },
    messages: { document: [says(user(text("a"), pdf)), "messages[0].content[1]"] },
    responses: { input_file: [shown({ type: "input_file", file_data: "JVBERi0x" }), "input[0].content[1]"] },
  },
  sound: {
    chat: {
      input_audio: [
        says(user(text("a"), { type: "input_audio", input_audio: { data: "x", format: "wav" } })),
        "messages[0].content[1]",
      ],
    },
  },
  "form of the answer": {
    chat: {
      response_format: [{ response_format: { type: "json_object" } }, "response_format"],
    },
    messages: {
      "output_config.format": [{ output_config: { format: schema } }, "output_config.format"],
      output_format: [{ output_format: schema }, "output_format"],
    },
    responses: { "text.format": [{ text: { format: { type: "json_object" } } }, "text.format"] },
  },
  "log probabilities": {
    chat: { logprobs: [{ logprobs: true }, "logprobs"] },
    responses: {
      top_logprobs: [{ top_logprobs: 1 }, "top_logprobs"],
      include: [{ include: ["message.output_text.logprobs"] }, "include"],
    },
  },
  "reasoning effort": {
    chat: { reasoning_effort: [{ reasoning_effort: "none" }, "reasoning_effort"] },
  },
};

/** A body with a hint (a field that requires no capability), and the same body without it. */
type Hinting = [body: object, plain: object];

const many = { tools: [chatTool], parallel_tool_calls: true };
const listed = { tools: [responsesTool], parallel_tool_calls: true };

export const hintProbes: Record<string, { capability: Capability; bodies: Fields<Hinting> }> = {
  "reasoning effort of Messages and Responses": {
    capability: "reasoning",
    bodies: {
      messages: {
        thinking: [{ thinking: { type: "adaptive" } }, {}],
        "output_config.effort": [{ output_config: { effort: "low" } }, {}],
      },
      responses: { reasoning: [{ reasoning: { effort: "low", summary: "auto" } }, {}] },
    },
  },
  "permission to call in parallel": {
    capability: "parallel_tools",
    bodies: {
      chat: { parallel_tool_calls: [many, { tools: many.tools }] },
      responses: { parallel_tool_calls: [listed, { tools: listed.tools }] },
    },
  },
};
