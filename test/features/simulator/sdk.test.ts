import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { startSimulator } from "../../harness/simulator.ts";

/** The official client talks to the simulator directly, without a gateway. */
const simulator = await startSimulator({ key: "secret" });
const client = new OpenAI({ baseURL: simulator.url, apiKey: "secret", maxRetries: 0 });
afterAll(() => simulator.stop());

const model = "acme/writer-1";
const user = (content: string) => [{ role: "user" as const, content }];

describe("the openai SDK", () => {
  test("chats", async () => {
    const reply = await client.chat.completions.create({ model, messages: user("Hello") });
    expect(reply.choices[0]?.message.content).toContain("You said: “Hello”");
  });

  test("streams, and gathers the stream", async () => {
    const stream_options = { include_usage: true };
    const stream = client.chat.completions.stream({ model, messages: user("Hello"), stream_options });
    let text = "";
    stream.on("content", (delta) => {
      text += delta;
    });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(text);
    expect(final.choices[0]?.finish_reason).toBe("stop");
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(20);
  });

  test("meets the class of error that belongs to each status, and the error in a stream", async () => {
    const ask = async (cue: string) => client.chat.completions.create({ model, messages: user(`[simulator: ${cue}]`) });
    await expect(ask("status=429")).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(ask("status=503")).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    await expect(ask("context-length")).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    const messages = user("[simulator: error-after=2]");
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const read = async () => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });
});
