/**
 * Whatever an engine answers, the most that it can do is to end its own request: bytes beyond the limits are neither
 * parsed nor kept.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { parts_max } from "../../../src/core/protocol/answer.ts";
import { UnreadableAnswer } from "../../../src/core/protocol/codec.ts";
import { AnswerSize } from "../../../src/core/upstream/answer-bounds.ts";
import { ask } from "../../../src/core/upstream/ask.ts";
import type { AttemptEnd } from "../../../src/core/upstream/attempt.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../../src/core/upstream/codecs.ts";
import { answerOf, type Content } from "../../attacks/engine-words.ts";
import { grammarProblem } from "../protocol/grammar.ts";
import { engineClient, question } from "./asking.ts";

const engines = engineClient();
let answer: { isStream: boolean; bytes: Uint8Array };
const server = Bun.serve({
  port: 0,
  async fetch(request) {
    await request.text();
    const headers = { "content-type": answer.isStream ? "text/event-stream" : "application/json" };
    return new Response(answer.bytes as Uint8Array<ArrayBuffer>, { headers });
  },
});
afterAll(() => server.stop(true));

let held: number[];
let holds: (bytes: number) => void;
beforeEach(() => {
  held = [];
  holds = (bytes) => void held.push(bytes);
});

async function told(protocol: UpstreamProtocol, content: Content, isStream: boolean, gather_ms = 0) {
  answer = answerOf(protocol, content, isStream);
  const events: InferenceEvent[] = [];
  let end: AttemptEnd | null = null;
  const more = {
    ...{ client: engines, gather_ms, stream: isStream, outputTokens_max: 1e9, hold: (bytes: number) => holds(bytes) },
    ended: (how: AttemptEnd) => {
      end = how;
    },
  };
  const asked = question(`http://127.0.0.1:${server.port}/v1`, more, protocol);
  for await (const batch of ask(asked)) events.push(...batch);
  expect(grammarProblem(events)).toBeNull();
  const last = events.at(-1);
  return { end: end as AttemptEnd | null, events, code: last?.type === "response-failed" ? last.fault.code : null };
}

const call = (written: string, at = 0) => ({ id: `call_${at}`, name: "run", written });
const many = (count: number, of: (at: number) => string) => Array.from({ length: count }, (_, at) => of(at)).join(",");
const refused: Record<string, Content> = {
  "100,000 brackets": { document: "[".repeat(100_000) },
  "too many values": { fields: `"x":[${many(600_000, () => "1")}]` },
  "too many members": { fields: `"x":{${many(260_000, () => '"k":0')}}` },
  "too many names": { fields: `"x":{${many(12_000, (at) => `"k${at}":0`)}}` },
  "a text without end": { text: `"${"a".repeat(9 * 1024 * 1024)}"` },
  "one part too many": { turns: parts_max + 1 },
  "one call too many": { calls: Array.from({ length: parts_max + 1 }, (_, at) => call("{}", at)) },
  "deep arguments": { arguments: `{"x":${"[".repeat(20_000)}${"]".repeat(20_000)}}` },
  "arguments of too many values": { arguments: `{"x":[${many(120_000, () => "1")}]}` },
  "many calls whose arguments are too many values together": {
    calls: Array.from({ length: 50 }, (_, at) => call(`{"x":[${many(3_000, () => "1")}]}`, at)),
  },
};
const passed: Record<string, Content> = {
  "a megabyte of text": { text: `"${"hello ".repeat(170_000)}"` },
  "a megabyte of escapes": { text: `"${"\\u4e2d".repeat(170_000)}"` },
  "64 KiB of arguments": { arguments: JSON.stringify({ x: "line\n".repeat(13_000) }) },
  "a table in the arguments": { arguments: JSON.stringify({ x: Array.from({ length: 9_000 }, (_, at) => [at, at]) }) },
  "parts up to the limit": { turns: parts_max - 1 },
  "128 calls": { calls: Array.from({ length: 128 }, (_, at) => call('{"a":[{"b":1}]}', at)) },
};

describe.each(upstreamProtocols)("%s", (protocol) => {
  describe.each([false, true])("streamed: %s", (isStream) => {
    test.each(Object.entries(refused))("%s is refused, and may be asked elsewhere", async (_, content) => {
      const { code, end } = await told(protocol, content, isStream);
      expect([code, end?.kind]).toEqual(["upstream_unavailable", "malformed"]);
      expect(end?.unread).toBeString();
    });

    test.each(Object.entries(passed))("%s passes", async (_, content) => {
      const { code, end } = await told(protocol, content, isStream);
      expect([code, end]).toEqual([null, { kind: "answered" }]);
    });
  });

  test("calls of one id, or of none, get ids of their own", async () => {
    for (const id of ["call", undefined]) {
      const calls = Array.from({ length: 1000 }, () =>
        id ? { id, name: "run", written: "{}" } : { name: "run", written: "{}" },
      );
      const { events } = await told(protocol, { calls }, false);
      const ids = events.flatMap((event) =>
        event.type === "part-start" && event.part.kind === "tool-call" ? [event.part.callId] : [],
      );
      expect(new Set(ids).size).toBe(1000);
    }
  });
});

describe("the text of an answer", () => {
  test.each([false, true])("has an end, however small its pieces are; collected: %s", (isCollected) => {
    const size = new AnswerSize(isCollected);
    const piece: InferenceEvent = { type: "part-delta", index: 0, delta: "a".repeat(1024 * 1024) };
    for (let mebibytes = 0; mebibytes < 8; mebibytes++) size.take(piece);
    expect(() => size.take({ ...piece, delta: "a" })).toThrow(UnreadableAnswer);
  });
});

describe("what is held of an answer", () => {
  const large: Content = { text: `"${"hello ".repeat(100_000)}"` };

  test("is told before it is held, whole or as one event", async () => {
    for (const isStream of [false, true]) {
      held = [];
      expect((await told("openai-chat", large, isStream)).code).toBeNull();
      // The held bytes are reported as they grow, except for those of the last read.
      expect(Math.max(...held)).toBeGreaterThan(600_000 - 64 * 1024);
      expect(held.every((bytes, at) => at === 0 || bytes - held[at - 1]! < 128 * 1024)).toBe(true);
    }
    expect(held.at(-1)).toBe(0);
  });

  test("is told of what nobody streams until its end", async () => {
    const calls = Array.from({ length: 100 }, (_, at) => call(JSON.stringify({ x: "a".repeat(3000) }), at));
    expect((await told("openai-chat", { calls }, true, 10)).code).toBeNull();
    expect(held.at(-1)).toBeGreaterThan(300_000);
  });

  test("is nothing where the answer is small", async () => {
    for (const isStream of [false, true]) await told("openai-chat", { text: '"hello"' }, isStream);
    expect(held).toEqual([]);
  });

  test("ends the request where there is no room, and says nothing against the engine", async () => {
    holds = () => {
      throw new Fault("overloaded", "No room.", { retryAfterSeconds: 1 });
    };
    for (const isStream of [false, true]) {
      const { code, end } = await told("openai-chat", large, isStream);
      expect([code, end]).toEqual(["overloaded", { kind: "abandoned" }]);
    }
  });
});
