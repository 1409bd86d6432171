// Checks of the SDKs of OpenAI and Anthropic through a gateway. Each check returns what the SDK's user would see, or
// throws.
import { strict as assert } from "node:assert";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Gateway } from "./gateways.ts";

const hello = "Say hello.";
const parameters = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
const weather = `Look it up. [simulator: call=weather:${btoa('{"city":"Ulm"}')}]`;

export const sdkChecks: Record<string, (gateway: Gateway) => Promise<void>> = {
  async "OpenAI's SDK, chat, whole"(gateway) {
    const done = await openai(gateway).chat.completions.create({ model: gateway.model, messages: [user(hello)] });
    assert.ok(done.choices[0]?.message.content, "no text");
    assert.equal(done.choices[0].finish_reason, "stop");
    assert.ok(done.usage?.completion_tokens, "no usage");
  },
  async "OpenAI's SDK, chat, streamed"(gateway) {
    const stream = openai(gateway).chat.completions.stream({
      model: gateway.model,
      messages: [user(hello)],
      stream_options: { include_usage: true },
    });
    const done = await stream.finalChatCompletion();
    assert.ok(done.choices[0]?.message.content, "no text");
    assert.ok(done.usage?.completion_tokens, "no usage");
  },
  async "OpenAI's SDK, chat, a tool, streamed"(gateway) {
    const stream = openai(gateway).chat.completions.stream({
      model: gateway.model,
      messages: [user(weather)],
      tools: [{ type: "function", function: { name: "weather", parameters } }],
    });
    const done = await stream.finalChatCompletion();
    const call = done.choices[0]?.message.tool_calls?.[0];
    assert.equal(call?.type === "function" && call.function.name, "weather");
    assert.equal(done.choices[0]?.finish_reason, "tool_calls");
  },
  async "OpenAI's SDK, Responses, whole"(gateway) {
    const done = await openai(gateway).responses.create({ model: gateway.model, input: hello });
    assert.equal(done.status, "completed");
    assert.ok(done.output_text, "no text");
    assert.ok(done.usage?.output_tokens, "no usage");
  },
  async "OpenAI's SDK, Responses, streamed"(gateway) {
    const done = await openai(gateway).responses.stream({ model: gateway.model, input: hello }).finalResponse();
    assert.equal(done.status, "completed");
    assert.ok(done.output_text, "no text");
  },
  async "OpenAI's SDK, Responses, a tool, streamed"(gateway) {
    const stream = openai(gateway).responses.stream({
      model: gateway.model,
      input: weather,
      tools: [{ type: "function", name: "weather", parameters, strict: false }],
    });
    const done = await stream.finalResponse();
    assert.ok(
      done.output.some((item) => item.type === "function_call" && item.name === "weather"),
      "no call",
    );
  },
  async "OpenAI's SDK, Responses, a second turn by previous_response_id"(gateway) {
    const client = openai(gateway);
    const first = await client.responses.create({ model: gateway.model, input: "The word is apple." });
    const input = "What was it? [simulator: echo]";
    const second = await client.responses.create({ model: gateway.model, input, previous_response_id: first.id });
    assert.ok(second.output_text, "no text");
    assert.ok(second.usage!.input_tokens > first.usage!.input_tokens, "the first turn did not reach the engine");
  },
  async "Anthropic's SDK, whole"(gateway) {
    const done = await anthropic(gateway).messages.create(message(gateway, hello));
    assert.equal(done.stop_reason, "end_turn");
    assert.ok(done.content[0]?.type === "text" && done.content[0].text, "no text");
    assert.ok(done.usage.output_tokens, "no usage");
  },
  async "Anthropic's SDK, streamed"(gateway) {
    const done = await anthropic(gateway).messages.stream(message(gateway, hello)).finalMessage();
    assert.equal(done.stop_reason, "end_turn");
    assert.ok(done.usage.output_tokens, "no usage");
  },
  async "Anthropic's SDK, a tool, streamed"(gateway) {
    const tools = [{ name: "weather", input_schema: parameters }];
    const done = await anthropic(gateway)
      .messages.stream({ ...message(gateway, weather), tools })
      .finalMessage();
    assert.equal(done.stop_reason, "tool_use");
    const call = done.content.find((block) => block.type === "tool_use");
    assert.deepEqual(call?.type === "tool_use" && call.input, { city: "Ulm" });
  },
  async "Anthropic's SDK, counted tokens"(gateway) {
    const { model } = gateway;
    const { input_tokens } = await anthropic(gateway).messages.countTokens({ model, messages: [user(hello)] });
    assert.ok(input_tokens > 0, "nothing counted");
  },
};

const user = (content: string) => ({ role: "user" as const, content });
const message = ({ model }: Gateway, text: string) => ({ model, max_tokens: 256, messages: [user(text)] });
const often = { maxRetries: 0, timeout: 30_000 };

function openai({ url, key, headers }: Gateway): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: key, defaultHeaders: headers, ...often });
}

function anthropic({ url, key, headers }: Gateway): Anthropic {
  return new Anthropic({ baseURL: url, apiKey: key, defaultHeaders: headers, ...often });
}
