/** How each type of OpenAI's SDK of chat completions is treated. */
import { png, says, text, user } from "../losses/probe.ts";
import { rolesOf, typesOf } from "./declarations.ts";
import { answered, carried, leftOut, type Place, passedOver, placesOf, refused } from "./place.ts";

const { request, answer } = placesOf("chat");
const known = (name: string) => typesOf("chat", name);
const tool = { type: "function", function: { name: "f" } };
const custom = (format?: object) => ({ type: "custom", custom: { name: "patch", description: "MARK", format } });
const call = { id: "c1", type: "function", function: { name: "f", arguments: '{"MARK":1}' } };
const customCall = { id: "c1", type: "custom", custom: { name: "patch", input: "MARK" } };
const inHistory = (call: object) =>
  says(
    user(text("a")),
    { role: "assistant", tool_calls: [call] },
    { role: "tool", tool_call_id: "c1", content: [text("RESULT")] },
  );
const role = (role: string) => says(user(text("a")), { role, content: "MARK" });
const reply = (message: object) => ({
  choices: [{ index: 0, message: { role: "assistant", content: "TEXT", ...message }, finish_reason: "stop" }],
});
const file = { file_data: "data:application/pdf;base64,JVBERi0x", filename: "a.pdf" };

export const chatPlaces: Record<string, Place> = {
  "chat: role of a message": request(
    rolesOf("chat", "ChatCompletionMessageParam"),
    {
      developer: carried(role("developer"), /MARK/),
      system: carried(role("system"), /MARK/),
      user: carried(role("user"), /MARK/),
      assistant: carried(inHistory(call), /MARK/),
      tool: carried(inHistory(call), /RESULT/),
      function: refused,
    },
    (type) => [{ body: role(type), param: "messages[1].role" }],
  ),
  "chat: part of a user's message": request(known("ChatCompletionContentPart"), {
    text: carried(says(user(text("MARK"))), /MARK/),
    image_url: carried(
      says(user({ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } })),
      /iVBORw0KGgo/,
    ),
    input_audio: carried(says(user({ type: "input_audio", input_audio: { data: "MARK", format: "wav" } })), /MARK/),
    file: carried(says(user({ type: "file", file })), /JVBERi0x/),
  }),
  "chat: part of an assistant's message": request(known("ChatCompletionAssistantMessageParam.content"), {
    text: carried(says(user(text("a")), { role: "assistant", content: [text("MARK")] }, user(text("b"))), /MARK/),
    refusal: carried(
      says(user(text("a")), { role: "assistant", content: [{ type: "refusal", refusal: "MARK" }] }, user(text("b"))),
      /MARK/,
    ),
  }),
  "chat: part of a tool's message": request(known("ChatCompletionToolMessageParam.content"), {
    text: carried(inHistory(call), /RESULT/),
  }),
  "chat: tool": request(known("ChatCompletionTool"), {
    function: carried({ tools: [tool] }, /"name":"f"/),
    custom: carried({ tools: [custom()] }, /MARK/),
  }),
  "chat: input of a custom tool": request(known("ChatCompletionCustomTool.Custom.format"), {
    text: carried({ tools: [custom({ type: "text" })] }, /plain text/),
    grammar: carried(
      { tools: [custom({ type: "grammar", grammar: { syntax: "lark", definition: "GRAMMAR" } })] },
      /GRAMMAR/,
    ),
  }),
  "chat: choice of a tool": request(known("ChatCompletionToolChoiceOption"), {
    function: carried({ tools: [tool], tool_choice: tool }, /"required"|"type":"tool"/),
    custom: carried(
      { tools: [custom()], tool_choice: { type: "custom", custom: { name: "patch" } } },
      /"required"|"type":"tool"/,
    ),
    allowed_tools: carried(
      {
        tools: [tool, custom()],
        tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool] } },
      },
      /^(?!.*patch)/,
    ),
  }),
  "chat: call of a tool, in the history": request(known("ChatCompletionMessageToolCall"), {
    function: carried(inHistory(call), /MARK/),
    custom: carried({ tools: [custom()], ...inHistory(customCall) }, /MARK/),
  }),
  "chat: form of the answer": request(known("ChatCompletionCreateParamsBase.response_format"), {
    text: leftOut({ response_format: { type: "text" } }, {}),
    json_object: carried({ response_format: { type: "json_object" } }, /json_object/),
    json_schema: carried(
      { response_format: { type: "json_schema", json_schema: { name: "n", schema: { MARK: 1 } } } },
      /MARK/,
    ),
  }),
  "chat: call of a tool, in an answer": answer(
    known("ChatCompletionMessage.tool_calls"),
    {
      function: answered(reply({ tool_calls: [call] }), /"type":"function".*MARK/),
      custom: answered(reply({ tool_calls: [customCall] }), /"type":"custom".*MARK/),
    },
    () => reply({}),
  ),
  "chat: annotation of a text": answer(
    known("ChatCompletionMessage.Annotation"),
    { url_citation: passedOver },
    (type) => reply({ annotations: [{ type, url_citation: {} }] }),
  ),
};
