/**
 * Bodies that the contract's schema accepts and that the service still refuses with 400: each kind has the reason why
 * no schema can say it, and an example. A body that is refused for any other reason must not satisfy the schema.
 */
import { defaultModels } from "../../../src/config/models.ts";
import type { FaultCode } from "../../../src/core/inference/fault.ts";
import type { Capability } from "../../../src/core/inference/request.ts";

export interface Kind {
  code: FaultCode;
  says: RegExp;
  why: string;
  example: object;
}

const modelWith = (capability: Capability, has: boolean) =>
  defaultModels().find(({ capabilities }) => capabilities.has(capability) === has)!.id;
const able = modelWith("tools", true);
const unable = modelWith("tools", false);

const comparesValues = "JSON Schema cannot compare a value with another one that stands elsewhere in the body";
const ofTheModel = "the catalog says what each model can do; a schema that did would be one for each model";
const ofTheEngine = "the engine's protocol has no words for it; which engine serves is the operator's choice";

const ofImages = "where a URL leads, and how its host is spelled, no pattern can tell; what is refused is by setting";
const seeing = modelWith("vision", true);
const hiddenUser = "https://user@images.example/a.png";
const imageKind = (example: object): Kind => ({
  code: "invalid_value",
  says: /^The URL of an image /,
  why: ofImages,
  example: { ...example, model: seeing },
});

const chat = { model: able, messages: [{ role: "user", content: "a" }] };
const chatTool = { type: "function", function: { name: "a" } };
const chatKinds: Kind[] = [
  imageKind({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: hiddenUser } }] }] }),
  {
    code: "invalid_value",
    says: /tool_call_id' must be the id of a tool call in an earlier assistant message/,
    why: comparesValues,
    example: { ...chat, messages: [{ role: "tool", tool_call_id: "a", content: "a" }] },
  },
  {
    code: "invalid_value",
    says: /^'tool_choice\..*name' must name one of 'tools'/,
    why: comparesValues,
    example: { ...chat, tools: [chatTool], tool_choice: { type: "function", function: { name: "b" } } },
  },
  {
    code: "unsupported_feature",
    says: /^The model '.*' does not support /,
    why: ofTheModel,
    example: { ...chat, model: unable, tools: [chatTool] },
  },
];

const messages = { model: able, max_tokens: 1, messages: [{ role: "user", content: "a" }] };
const messagesTool = { name: "a", input_schema: {} };
const userBlock = (block: object) => ({ ...messages, messages: [{ role: "user", content: [block] }] });
const changing = (block: object) => ({
  ...messages,
  messages: [...messages.messages, { role: "system", content: [block] }],
});
const notCallable = "which tools are left out is told by lists of kinds and dates, which grow with every client";
const messagesKinds: Kind[] = [
  imageKind(userBlock({ type: "image", source: { type: "url", url: hiddenUser } })),
  {
    code: "invalid_value",
    says: /tool_use_id' must be the id of a 'tool_use' block/,
    why: comparesValues,
    example: userBlock({ type: "tool_result", tool_use_id: "a" }),
  },
  {
    code: "invalid_value",
    says: /data' must be a JPEG, PNG, GIF or WebP image in base64/,
    why: "a schema reads no bytes",
    example: userBlock({ type: "image", source: { type: "base64", media_type: "image/png", data: "a" } }),
  },
  {
    code: "invalid_value",
    says: /data' must be a PDF in base64/,
    why: "a pattern over megabytes of base64 would cost every client that validates more than it tells",
    example: userBlock({
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "?" },
    }),
  },
  {
    code: "invalid_value",
    says: /\.tool\.name' must be the name of a tool in 'tools', or in an earlier 'tool_addition'/,
    why: comparesValues,
    example: changing({ type: "tool_removal", tool: { type: "tool_reference", name: "a" } }),
  },
  {
    code: "invalid_value",
    says: /\.definition\.name' must not be the name of an earlier tool of another type/,
    why: comparesValues,
    example: {
      ...changing({
        type: "tool_addition",
        tool: { type: "tool_definition", definition: { type: "bash_20250124", name: "bash" } },
      }),
      tools: [{ name: "bash", input_schema: {} }],
    },
  },
  {
    code: "invalid_value",
    says: /^'tool_choice.name' must name one of 'tools'/,
    why: comparesValues,
    example: { ...messages, tools: [messagesTool], tool_choice: { type: "tool", name: "b" } },
  },
  {
    code: "invalid_value",
    says: /^'tool_choice' requires callable 'tools'/,
    why: notCallable,
    example: { ...messages, tool_choice: { type: "any" } },
  },
  {
    code: "unsupported_feature",
    says: /'(tools\[\d+\]|.*\.tool\.definition)\.type' asks for|'tool_choice.name' asks for/,
    why: notCallable,
    example: { ...messages, tools: [{ type: "web_search_20250305", name: "web_search" }] },
  },
  {
    code: "unsupported_feature",
    says: /^The model '.*' does not support /,
    why: ofTheModel,
    example: { ...messages, model: unable, tools: [messagesTool] },
  },
  {
    code: "unsupported_feature",
    says: /^The model's engine does not support /,
    why: ofTheEngine,
    example: { ...messages, messages: [...messages.messages, { role: "assistant", content: "a" }] },
  },
];

const responses = { model: able, input: "a" };
const responsesTool = { type: "function", name: "a" };
const trigger = { type: "compaction_trigger" };
/** The kinds that apply to every body with a conversation. */
const conversationKinds: Kind[] = [
  {
    code: "invalid_value",
    says: /asks for a summary of the conversation, and must be the last item/,
    why: "a schema does not know which item is the last",
    example: { ...responses, input: [trigger, { role: "user", content: "a" }] },
  },
  {
    code: "invalid_value",
    says: /call_id' must be the id of an earlier call/,
    why: comparesValues,
    example: { ...responses, input: [{ type: "function_call_output", call_id: "a", output: "a" }] },
  },
  {
    code: "previous_response_not_found",
    says: /must be the id of (a response|an item of a response) that is still stored/,
    why: "a schema does not know what is stored",
    example: { ...responses, previous_response_id: "a" },
  },
  {
    code: "invalid_value",
    says: /^'input' must have content for the model/,
    why: "whether reasoning says something here is known when it is unsealed",
    example: { ...responses, input: [{ type: "reasoning", encrypted_content: "a" }] },
  },
];
const responsesImage = imageKind({
  input: [{ role: "user", content: [{ type: "input_image", image_url: hiddenUser }] }],
});
const unableKind = (example: object): Kind => ({
  code: "unsupported_feature",
  says: /^The model '.*' does not support /,
  why: ofTheModel,
  example: { ...example, model: unable },
});
const responsesKinds: Kind[] = [
  ...conversationKinds,
  responsesImage,
  unableKind({ ...responses, tools: [responsesTool] }),
  {
    code: "invalid_value",
    says: /^'tool_choice\..*name' must name one of 'tools'/,
    why: comparesValues,
    example: { ...responses, tools: [responsesTool], tool_choice: { type: "function", name: "b" } },
  },
  {
    code: "invalid_value",
    says: /^'tool_choice' requires callable 'tools'/,
    why: "tools may also stand in 'additional_tools' items, and hosted ones are left out",
    example: { ...responses, tool_choice: "required" },
  },
  {
    code: "unsupported_feature",
    says: /'tools\[\d+\]\.type' asks for/,
    why: "a hosted tool is refused only where no tool of the caller is listed, in 'tools' or in an item",
    example: { ...responses, tools: [{ type: "web_search" }] },
  },
];

/** A call in the history, which requires a model with tools. */
const called = [{ type: "function_call", call_id: "a", name: "a", arguments: "{}" }];

export const kinds: Record<string, Kind[]> = {
  ChatCompletionRequest: chatKinds,
  MessagesRequest: messagesKinds,
  // Counting tokens refuses nothing more than the schema does. If an answer to a request would be refused, the request
  // is still counted, as far as it is understood.
  CountTokensRequest: [],
  ResponsesRequest: responsesKinds,
  ResponsesCompactRequest: [...conversationKinds, responsesImage, unableKind({ ...responses, input: called })],
  ResponsesInputTokensRequest: conversationKinds,
};
