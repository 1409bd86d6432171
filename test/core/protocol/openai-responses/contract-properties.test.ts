/** Bad input, by mutation: whatever a client sends is a request or a client error, and what is accepted can be served. */
import { expect, test } from "bun:test";
import { contract } from "../../../../src/core/protocol/contract.ts";
import { openaiResponsesCaller } from "../../../../src/core/protocol/openai-responses/codec.ts";
import { ResponsesRequest, TypedResponsesRequest } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { validateResponsesRequest } from "../../../../src/core/protocol/openai-responses/validate.ts";
import { agrees, answersAnyChange, anyChange, changesTo, reachesEngines } from "../changes.ts";
import { forAll } from "../for-all.ts";

const f = { type: "function", name: "f", parameters: { type: "object" }, strict: null };
const p = { type: "custom", name: "p", format: { type: "grammar", syntax: "lark", definition: "x" } };
const valid = {
  model: "acme/writer-1",
  instructions: "s",
  input: [
    { role: "developer", content: "d" },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "x" },
        { type: "input_image", image_url: "https://x", detail: "auto" },
        { type: "input_file", file_data: "eA==", filename: "x.pdf" },
      ],
    },
    { type: "reasoning", summary: [{ type: "summary_text", text: "r" }], encrypted_content: "e" },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}", namespace: "n" },
    { type: "custom_tool_call", call_id: "k", name: "p", input: "ls" },
    { type: "function_call_output", call_id: "c", output: "y" },
    { type: "custom_tool_call_output", call_id: "k", output: [{ type: "input_text", text: "z" }] },
    { type: "additional_tools", role: "developer", tools: [p] },
  ],
  stream: true,
  temperature: 1,
  tools: [f, { type: "namespace", name: "n", tools: [f, p] }, { type: "web_search" }],
  tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
  parallel_tool_calls: false,
  text: { format: { type: "json_schema", name: "n", schema: {} } },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  store: false,
};

const words = [
  "user",
  "function",
  "input_text",
  "custom",
  "auto",
  "json_object",
  "none",
  "",
  "c",
  "f",
  "message",
  "constructor",
];
const mutated = changesTo(valid, {
  words,
  keys: ["role", "type", "x", "content", "id", "context_management", "background"],
});

/** Checks that a request that was accepted reaches engines, and that an answer to it can be encoded for the client. */
function served(wire: ReturnType<typeof validateResponsesRequest>): void {
  reachesEngines(openaiResponsesCaller.request.decode(wire));
  const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1, model: wire.model };
  const encoder = openaiResponsesCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  encoder.heartbeat();
  expect(encoder.end().at(-1)?.data).toBe("[DONE]");
}

test(anyChange, () => answersAnyChange(mutated, (body) => served(validateResponsesRequest(body)), 1000));

test("the walk finds an offence exactly where the compiled check refuses", () =>
  agrees(contract(TypedResponsesRequest), mutated, 1000));

test("what is published lets through what is served, and a message needs no type in it", () => {
  const published = contract(ResponsesRequest);
  expect(published.satisfied(valid)).toBe(true);
  forAll([mutated], 50, (body) => {
    const check = contract(TypedResponsesRequest);
    if (check.satisfied(body)) expect(published.satisfied(body)).toBe(true);
  });
});

test("a body whose keys are names of the language is data like any other", () => {
  const hostile = JSON.stringify(valid)
    .replace('"stream":true', '"stream":true,"__proto__":{"store":true},"constructor":1')
    .replace('"name":"f","namespace":"n"', '"name":"__proto__","namespace":"constructor"');
  const wire = validateResponsesRequest(JSON.parse(hostile));
  served(wire);
  expect(wire.store).toBe(false);
});
