/** The treatment of each type in OpenAI's SDK for chat completions. */
import { says, text, user } from "../losses/probe.ts";
import { rolesOf, typesOf } from "./declarations.ts";
import { carried, leftOut, type Place, passedOver, placesOf, refused } from "./place.ts";

const { request, answer } = placesOf("chat");
const known = (name: string) => typesOf("chat", name);

export const chatPlaces: Record<string, Place> = {
  "chat: role of a message": request(
    ["messages"],
    rolesOf("chat", "ChatCompletionMessageParam"),
    { ...carried("developer", "system", "user", "assistant", "tool"), function: refused },
    (role) => [{ body: says(user(text("a")), { role, content: "MARK" }), param: "messages[1].role" }],
  ),
  "chat: part of a user's message": request(
    ["messages<user>.content"],
    known("ChatCompletionContentPart"),
    carried("text", "image_url", "input_audio", "file"),
  ),
  "chat: part of an assistant's message": request(
    ["messages<assistant>.content"],
    known("ChatCompletionAssistantMessageParam.content"),
    carried("text", "refusal"),
  ),
  "chat: part of a tool's message": request(
    ["messages<tool>.content"],
    known("ChatCompletionToolMessageParam.content"),
    carried("text"),
  ),
  "chat: tool": request(["tools"], known("ChatCompletionTool"), carried("function", "custom")),
  "chat: input of a custom tool": request(
    ["tools<custom>.custom.format"],
    known("ChatCompletionCustomTool.Custom.format"),
    carried("text", "grammar"),
  ),
  "chat: choice of a tool": request(
    ["tool_choice"],
    known("ChatCompletionToolChoiceOption"),
    carried("function", "custom", "allowed_tools"),
  ),
  "chat: call of a tool, in the history": request(
    ["messages<assistant>.tool_calls"],
    known("ChatCompletionMessageToolCall"),
    carried("function", "custom"),
  ),
  "chat: form of the answer": request(["response_format"], known("ChatCompletionCreateParamsBase.response_format"), {
    text: leftOut({ response_format: { type: "text" } }, {}),
    ...carried("json_object", "json_schema"),
  }),
  "chat: call of a tool, in an answer": answer(
    ["choices.message<assistant>.tool_calls"],
    known("ChatCompletionMessage.tool_calls"),
    carried("function", "custom"),
  ),
  "chat: annotation of a text": answer(
    [],
    known("ChatCompletionMessage.Annotation"),
    { url_citation: passedOver },
    (type) => ({
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "TEXT", annotations: [{ type, url_citation: {} }] },
          finish_reason: "stop",
        },
      ],
    }),
  ),
};
