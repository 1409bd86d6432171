import { afterAll, expect, test } from "bun:test";
import { startSimulator } from "../../harness/simulator.ts";
import { gathered, type Streamed, said, streamed, tools, type Wire, whole } from "./ask.ts";

const simulator = await startSimulator();
afterAll(() => simulator.stop());

const stream_options = { include_usage: true };
/** The stream of a response with these directives. */
const told = (directives: string) =>
  streamed(simulator, { ...said(`Hi [simulator: ${directives}]`), stream_options, tools });
const calls = ({ chunks }: Streamed): Wire[][] =>
  chunks.map((chunk) => chunk.choices[0]?.delta.tool_calls).filter(Boolean);
const fragments = (answer: Streamed) => calls(answer).flat();
const kindsIn = ({ chunks }: Streamed) => chunks.map((chunk) => Object.keys(chunk.choices[0]?.delta ?? {})[0]);

/** Checks of each quirk's effect on a stream. The key is the quirk's name. */
const quirks: Record<string, (answer: Streamed) => void> = {
  crlf({ text, data }) {
    expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    expect(data.at(-1)).toBe("[DONE]");
  },
  "no-space"({ text, data }) {
    expect(text).toStartWith("data:{");
    expect(data.at(-1)).toBe("[DONE]");
  },
  comments({ text, data }) {
    expect(text.split("\n").filter((line) => line.startsWith(":"))).toHaveLength(data.length);
  },
  bom({ bytes, chunks }) {
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(gathered(chunks).finish).toBe("stop");
  },
  "empty-choices-first"({ chunks }) {
    expect([chunks[0].choices, chunks[0].usage]).toEqual([[], null]);
  },
  empties({ chunks }) {
    const deltas = chunks.slice(0, -2).map((chunk) => chunk.choices[0].delta);
    expect(deltas.every((delta) => delta.role === "assistant" && delta.tool_calls.length === 0)).toBe(true);
  },
  "text-with-finish"({ chunks }) {
    expect(chunks.at(-2).choices[0]).toMatchObject({ delta: { content: expect.any(String) }, finish_reason: "stop" });
  },
  "usage-on-finish"({ chunks }) {
    const { choices, usage } = chunks.at(-1);
    expect([choices[0].finish_reason, usage.completion_tokens > 0]).toEqual(["stop", true]);
  },
  "usage-after"({ chunks }) {
    const [end, after] = chunks.slice(-2);
    expect(end.choices[0].finish_reason).toBe("stop");
    expect(after.choices[0]).toMatchObject({ delta: {}, finish_reason: null });
    expect(after.usage.completion_tokens).toBeGreaterThan(0);
  },
  "reasoning-field"({ chunks }) {
    expect(chunks.some((chunk) => chunk.choices[0]?.delta.reasoning)).toBe(true);
  },
  "reasoning-after-text"(answer) {
    const kinds = kindsIn(answer);
    expect(kinds.indexOf("reasoning_content")).toBeGreaterThan(kinds.lastIndexOf("content"));
  },
  "whole-tool-call"(answer) {
    const [one, ...none] = calls(answer);
    expect([one!.length, none.length]).toEqual([1, 0]);
    expect(JSON.parse(one![0].function.arguments)).toHaveProperty("city");
  },
  "two-calls-one-chunk"(answer) {
    expect(calls(answer).map(({ length }) => length)).toEqual([2]);
  },
  "interleaved-tools"(answer) {
    const order = fragments(answer).map((call) => call.index);
    expect(order.slice(0, 4)).toEqual([0, 1, 0, 1]);
  },
  "repeated-ids"(answer) {
    expect(fragments(answer).every((call) => call.id && call.function.name)).toBe(true);
  },
  "same-ids"(answer) {
    const same = fragments(answer).filter((call) => call.id);
    expect([same.length, new Set(same.map((call) => call.id)).size]).toEqual([2, 1]);
  },
  "ids-missing"(answer) {
    expect(fragments(answer).some((call) => "id" in call)).toBe(false);
  },
  "index-always-0"(answer) {
    const zero = fragments(answer);
    expect(new Set(zero.map((call) => call.index))).toEqual(new Set([0]));
    expect(zero.filter((call) => call.id)).toHaveLength(2);
  },
  "index-missing"(answer) {
    expect(fragments(answer).some((call) => "index" in call)).toBe(false);
  },
  "stop-with-tools"({ chunks }) {
    const { finish, calls } = gathered(chunks);
    expect([finish, calls.length]).toEqual(["stop", 1]);
  },
  "cut-arguments"({ chunks }) {
    const { finish, calls } = gathered(chunks);
    expect(finish).toBe("length");
    expect(() => JSON.parse(calls[0].arguments)).toThrow();
  },
  "text-after-tools"(answer) {
    const kinds = kindsIn(answer);
    expect(kinds.indexOf("content")).toBeGreaterThan(kinds.lastIndexOf("tool_calls"));
  },
};

test.each(Object.entries(quirks))("%s", async (quirk, isSeen) => isSeen(await told(`quirk=${quirk}`)));

test("reasoning-field, in an answer that is not streamed", async () => {
  const body = await whole(simulator, said("[simulator: quirk=reasoning-field]"));
  expect(body.choices[0].message.reasoning).toEqual(expect.any(String));
});

test("split-utf8: reads end inside characters, and nothing is lost", async () => {
  const { reads, chunks } = await streamed(simulator, said("水水 [simulator: echo quirk=split-utf8]"));
  const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
  expect(reads.filter((read) => isContinuation(read[0])).length).toBeGreaterThan(0);
  expect(gathered(chunks).content).toBe("水水");
});

test("tool calls without a quirk: a head, then fragments, with their index", async () => {
  const answer = await told("calls=2");
  expect(fragments(answer).filter((call) => call.id)).toHaveLength(2);
  const called = { name: "get_weather", arguments: "" };
  expect(fragments(answer)[0]).toMatchObject({ index: 0, type: "function", function: called });
  expect(gathered(answer.chunks).calls.map((call: Wire) => JSON.parse(call.arguments))).toHaveLength(2);
});
