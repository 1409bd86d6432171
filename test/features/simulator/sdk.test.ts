import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { makeParseableResponseFormat } from "openai/lib/parser";
import { startSimulator } from "../../harness/simulator.ts";
import { until } from "../../harness/until.ts";

/** The official client, straight at the simulator. */
const simulator = await startSimulator({ key: "secret" });
const client = new OpenAI({ baseURL: simulator.url, apiKey: "secret", maxRetries: 0 });
afterAll(() => simulator.stop());

const model = "acme/writer-1";
const user = (content: string) => [{ role: "user" as const, content }];
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const tools = ["get_weather", "get_time"].map((name) => ({
  type: "function" as const,
  function: { name, parameters, strict: true },
}));

describe("the openai SDK", () => {
  test("lists and retrieves models", async () => {
    expect((await client.models.list()).data[0]?.id).toBe("simulator");
    expect((await client.models.retrieve("a/b")).id).toBe("a/b");
  });

  test("chats", async () => {
    const reply = await client.chat.completions.create({ model, messages: user("Hello") });
    expect(reply.choices[0]?.message.content).toContain("You said: “Hello”");
  });

  test("streams, and gathers the stream", async () => {
    const stream = client.chat.completions.stream({
      model,
      messages: user("Hello"),
      stream_options: { include_usage: true },
    });
    let text = "";
    stream.on("content", (delta) => {
      text += delta;
    });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(text);
    expect(final.choices[0]?.finish_reason).toBe("stop");
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(20);
  });

  test.each(["calls=2", "quirk=two-calls-one-chunk"])(
    "calls two tools in parallel, streamed, and takes their results (%s)",
    async (cue) => {
      const messages: OpenAI.ChatCompletionMessageParam[] = user(`Both, please. [simulator: ${cue}]`);
      const first = await client.chat.completions.stream({ model, messages, tools }).finalMessage();
      expect(first.tool_calls?.map((call) => call.type === "function" && call.function.name)).toEqual([
        "get_weather",
        "get_time",
      ]);
      messages.push(first);
      for (const call of first.tool_calls ?? []) {
        expect(JSON.parse(call.type === "function" ? call.function.arguments : "")).toHaveProperty("city");
        messages.push({ role: "tool", tool_call_id: call.id, content: `sunny ${call.id}` });
      }
      const second = await client.chat.completions.create({ model, messages, tools });
      for (const call of first.tool_calls ?? [])
        expect(second.choices[0]?.message.content).toContain(`sunny ${call.id}`);
    },
  );

  test("parses structured output", async () => {
    const schema = {
      type: "object",
      properties: { steps: { type: "array", items: parameters }, done: { type: "boolean" } },
      required: ["steps", "done"],
      additionalProperties: false,
    };
    const response_format = makeParseableResponseFormat<{ steps: { city: string }[]; done: boolean }>(
      { type: "json_schema", json_schema: { name: "plan", strict: true, schema } },
      JSON.parse,
    );
    const reply = await client.chat.completions.parse({ model, messages: user("Plan"), response_format });
    const parsed = reply.choices[0]?.message.parsed;
    expect(typeof parsed?.steps[0]?.city).toBe("string");
    expect(typeof parsed?.done).toBe("boolean");
  });

  test("meets the class of error that belongs to each status, and the error in a stream", async () => {
    const ask = async (cue: string) => client.chat.completions.create({ model, messages: user(`[simulator: ${cue}]`) });
    await expect(ask("status=429")).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(ask("status=503")).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    await expect(ask("context-length")).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    const stream = await client.chat.completions.create({
      model,
      messages: user("[simulator: error-after=2]"),
      stream: true,
    });
    const read = async () => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  test("aborts, and the simulator knows at once", async () => {
    const messages = user("[simulator: tps=50 tokens=1000]");
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await until(() => simulator.requests.at(-1)?.ended === "client-left");
    expect(simulator.requests.at(-1)!.tokens).toBeLessThan(200);
  });
});
