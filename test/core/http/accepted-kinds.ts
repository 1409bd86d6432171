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

const kindOf =
  (code: FaultCode) =>
  (says: RegExp, why: string, example: object): Kind => ({ code, says, why, example });
const [invalid, unsupported] = [kindOf("invalid_value"), kindOf("unsupported_feature")];

const seeing = modelWith("vision", true);
const hiddenUser = "https://user@images.example/a.png";
/** Kinds of refused bodies that several protocols have, each with an example body of its protocol. */
const imageKind = (example: object) => invalid(/^The URL of an image /, ofImages, { ...example, model: seeing });
const unableKind = (example: object) =>
  unsupported(/^The model '.*' does not support /, ofTheModel, { ...example, model: unable });
const chosenKind = (example: object) =>
  invalid(/^'tool_choice\..*name' must name one of 'tools'/, comparesValues, example);

const chat = { model: able, messages: [{ role: "user", content: "a" }] };
const chatTool = { type: "function", function: { name: "a" } };
const chatKinds: Kind[] = [
  imageKind({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: hiddenUser } }] }] }),
  invalid(/tool_call_id' must be the id of a tool call in an earlier assistant message/, comparesValues, {
    ...chat,
    messages: [{ role: "tool", tool_call_id: "a", content: "a" }],
  }),
  chosenKind({ ...chat, tools: [chatTool], tool_choice: { type: "function", function: { name: "b" } } }),
  unableKind({ ...chat, tools: [chatTool] }),
];

const messages = { model: able, max_tokens: 1, messages: [{ role: "user", content: "a" }] };
const messagesTool = { name: "a", input_schema: {} };
const userBlock = (block: object) => ({ ...messages, messages: [{ role: "user", content: [block] }] });
const changing = (block: object) => ({
  ...messages,
  messages: [...messages.messages, { role: "system", content: [block] }],
});
const bash = { type: "tool_definition", definition: { type: "bash_20250124", name: "bash" } };
const notCallable = "which tools are left out is told by lists of kinds and dates, which grow with every client";
const messagesKinds: Kind[] = [
  imageKind(userBlock({ type: "image", source: { type: "url", url: hiddenUser } })),
  invalid(
    /tool_use_id' must be the id of a 'tool_use' block/,
    comparesValues,
    userBlock({ type: "tool_result", tool_use_id: "a" }),
  ),
  invalid(
    /data' must be a JPEG, PNG, GIF or WebP image in base64/,
    "a schema reads no bytes",
    userBlock({ type: "image", source: { type: "base64", media_type: "image/png", data: "a" } }),
  ),
  invalid(
    /data' must be a PDF in base64/,
    "a pattern over megabytes of base64 would cost every client that validates more than it tells",
    userBlock({ type: "document", source: { type: "base64", media_type: "application/pdf", data: "?" } }),
  ),
  invalid(
    /\.tool\.name' must be the name of a tool in 'tools', or in an earlier 'tool_addition'/,
    comparesValues,
    changing({ type: "tool_removal", tool: { type: "tool_reference", name: "a" } }),
  ),
  invalid(/\.definition\.name' must not be the name of an earlier tool of another type/, comparesValues, {
    ...changing({ type: "tool_addition", tool: bash }),
    tools: [{ name: "bash", input_schema: {} }],
  }),
  chosenKind({ ...messages, tools: [messagesTool], tool_choice: { type: "tool", name: "b" } }),
  invalid(/^'tool_choice' requires callable 'tools'/, notCallable, { ...messages, tool_choice: { type: "any" } }),
  unsupported(/'(tools\[\d+\]|.*\.tool\.definition)\.type' asks for|'tool_choice.name' asks for/, notCallable, {
    ...messages,
    tools: [{ type: "web_search_20250305", name: "web_search" }],
  }),
  unableKind({ ...messages, tools: [messagesTool] }),
  unsupported(/^The model's engine does not support /, ofTheEngine, {
    ...messages,
    messages: [...messages.messages, { role: "assistant", content: "a" }],
  }),
];

const responses = { model: able, input: "a" };
const responsesTool = { type: "function", name: "a" };
const trigger = { type: "compaction_trigger" };
/** The kinds of refused bodies that every protocol with a conversation has. */
const conversationKinds: Kind[] = [
  invalid(
    /asks for a summary of the conversation, and must be the last item/,
    "a schema does not know which item is the last",
    { ...responses, input: [trigger, { role: "user", content: "a" }] },
  ),
  invalid(/call_id' must be the id of an earlier call/, comparesValues, {
    ...responses,
    input: [{ type: "function_call_output", call_id: "a", output: "a" }],
  }),
  kindOf("previous_response_not_found")(
    /must be the id of (a response|an item of a response) that is still stored/,
    "a schema does not know what is stored",
    { ...responses, previous_response_id: "a" },
  ),
  invalid(
    /^'input' must have content for the model/,
    "whether reasoning says something here is known when it is unsealed",
    { ...responses, input: [{ type: "reasoning", encrypted_content: "a" }] },
  ),
];
const responsesImage = imageKind({
  input: [{ role: "user", content: [{ type: "input_image", image_url: hiddenUser }] }],
});
const responsesKinds: Kind[] = [
  ...conversationKinds,
  responsesImage,
  unableKind({ ...responses, tools: [responsesTool] }),
  chosenKind({ ...responses, tools: [responsesTool], tool_choice: { type: "function", name: "b" } }),
  invalid(
    /^'tool_choice' requires callable 'tools'/,
    "tools may also stand in 'additional_tools' items, and hosted ones are left out",
    { ...responses, tool_choice: "required" },
  ),
  unsupported(
    /'tools\[\d+\]\.type' asks for/,
    "a hosted tool is refused only where no tool of the caller is listed, in 'tools' or in an item",
    { ...responses, tools: [{ type: "web_search" }] },
  ),
  unsupported(
    /^'background' needs a stored response/,
    "whether responses are stored is also a setting of the service, so the operation checks both",
    { ...responses, background: true, store: false },
  ),
];

/** A tool call in the history, which requires a model that supports tools. */
const called = [{ type: "function_call", call_id: "a", name: "a", arguments: "{}" }];

export const kinds: Record<string, Kind[]> = {
  ChatCompletionRequest: chatKinds,
  MessagesRequest: messagesKinds,
  // Counting tokens refuses nothing beyond the schema. A request is counted, as far as it is understood, even if the
  // same request for an answer would be refused.
  CountTokensRequest: [],
  ResponsesRequest: responsesKinds,
  ResponsesCompactRequest: [...conversationKinds, responsesImage, unableKind({ ...responses, input: called })],
  ResponsesInputTokensRequest: conversationKinds,
};
