/** An engine that refuses an optional field is asked once more without it, and no engine gets half a character. */

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import type { Loss } from "../../../src/core/protocol/codec.ts";
import type { Dialect } from "../../../src/core/protocol/dialect.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { ask } from "../../../src/core/upstream/ask.ts";
import { LesserDialects } from "../../../src/core/usage/attempt-request.ts";
import { saying } from "../../harness/request.ts";
import { upstreamOf } from "../routing/models.ts";
import { engineClient, question } from "./asking.ts";

const asked: string[] = [];
let refuses: (body: string) => object | null = () => null;
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const body = await request.text();
    asked.push(body);
    const error = refuses(body);
    if (error) return Response.json({ error }, { status: 400 });
    const message = { role: "assistant", content: "fine" };
    return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  },
});
const engines = engineClient();
afterAll(() => server.stop(true));
beforeEach(() => {
  asked.length = 0;
});

const url = `http://127.0.0.1:${server.port}/v1`;
const upstream = upstreamOf(url);

async function answerTo(request: InferenceRequest, dialect: Dialect, inputBytes = 40) {
  const losses: Loss[] = [];
  const lesser: Dialect[] = [];
  const events: InferenceEvent[] = [];
  const asking = question(url, {
    ...{ client: engines, request, stream: false, inputBytes, dialect },
    lost: (loss) => void losses.push(loss),
    refuses: (found) => void lesser.push(found),
  });
  for await (const batch of ask(asking)) events.push(...batch);
  return { losses, lesser, last: events.at(-1)! };
}

const thoughtful = saying("hi", {
  stream: false,
  turns: [
    { role: "user", parts: [{ kind: "text", text: "hi" }] },
    {
      role: "assistant",
      parts: [
        { kind: "reasoning", text: "Hm." },
        { kind: "text", text: "Yes." },
      ],
    },
    { role: "user", parts: [{ kind: "text", text: "go on" }] },
  ],
});

describe("an engine that refuses a thought by its field", () => {
  test.each([
    { message: "property 'messages.1.assistant.reasoning_content' is unsupported" },
    { message: "Extra inputs are not permitted", param: "messages.1.reasoning_content" },
    { message: "Unrecognized request argument supplied: `reasoning_content`" },
  ])("is asked once more without it: %j", async (error) => {
    refuses = (body) => (body.includes("reasoning_content") ? error : null);
    const { last, losses, lesser } = await answerTo(thoughtful, dialects.generic);
    expect(last.type).toBe("response-end");
    expect(asked.map((body) => body.includes("reasoning_content"))).toEqual([true, false]);
    expect(asked[1]).toContain("Yes.");
    expect(losses).toEqual(["refused", "thoughts"]);
    expect(lesser[0]?.reasoning.out).toEqual([]);
  });

  test("is not asked again where it names another field, or the request had no thought", async () => {
    refuses = () => ({ message: "no", param: "temperature" });
    expect((await answerTo(thoughtful, dialects.generic)).last.type).toBe("response-failed");
    refuses = () => ({ message: "`reasoning_content` is unsupported" });
    expect((await answerTo(saying("hi", { stream: false }), dialects.generic)).last.type).toBe("response-failed");
    expect(asked).toHaveLength(2);
  });

  test("and that refuses the request without it too has refused it", async () => {
    refuses = () => ({ message: "`reasoning_content` is unsupported" });
    expect((await answerTo(thoughtful, dialects.generic)).last.type).toBe("response-failed");
    expect(asked).toHaveLength(2);
  });

  test("is known for an hour, by its name for the model", () => {
    const known = new LesserDialects();
    const route = { upstream, model: "m" };
    known.learned(route, dialects.openai, 0);
    expect(known.of(route, 3_599_999)).toBe(dialects.openai);
    expect(known.of(route, 3_600_000)).toBeUndefined();
    expect(known.of({ upstream, model: "other" }, 0)).toBeUndefined();
    expect(known.of({ upstream: { ...upstream, dialect: dialects.vllm }, model: "m" }, 0)).toBe(dialects.vllm);
  });
});

describe("half a character alone", () => {
  test.each([
    ["in a small request", 40, ""],
    ["in a large one, which is written in pieces", 2 * 1024 * 1024, "x".repeat(600_000)],
  ])("becomes U+FFFD %s, and whole ones stay", async (_, bytes, more) => {
    refuses = () => null;
    const request = saying(`cut\ud83d here \ude00, whole \ud83d\ude00, written \\ud83d${more}`, { stream: false });
    request.tools = [{ kind: "function", name: "t", description: "cut \udc00", parameters: { type: "object" } }];
    const { last, losses } = await answerTo(request, dialects.generic, bytes);
    expect(last.type).toBe("response-end");
    const body = JSON.parse(asked[0]!);
    expect(body.messages[0].content).toBe(`cut\ufffd here \ufffd, whole \ud83d\ude00, written \\ud83d${more}`);
    expect(body.tools[0].function.description).toBe("cut \ufffd");
    expect(losses).toEqual(["surrogates", "surrogates", "surrogates"]);
  });
});
