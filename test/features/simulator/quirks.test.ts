import { afterAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../../harness/simulator.ts";
import { gathered, said, streamed, tools, type Wire, whole } from "./ask.ts";

const simulator = await startSimulator();
afterAll(() => simulator.stop());

const stream_options = { include_usage: true };
const quirk = (name: string) =>
  streamed(simulator, { ...said(`Hi [simulator: quirk=${name}]`), stream_options, tools });
const calls = (chunks: Wire[]) => chunks.map((chunk) => chunk.choices[0]?.delta.tool_calls).filter(Boolean);
const first = (chunks: Wire[]) => calls(chunks).flat();
const kindsIn = (chunks: Wire[]) => chunks.map((chunk) => Object.keys(chunk.choices[0]?.delta ?? {})[0]);

describe("frames", () => {
  test("crlf", async () => {
    const { text, data } = await quirk("crlf");
    expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    expect(data.at(-1)).toBe("[DONE]");
  });

  test("no-space", async () => {
    const { text, data } = await quirk("no-space");
    expect(text).toStartWith("data:{");
    expect(data.at(-1)).toBe("[DONE]");
  });

  test("comments", async () => {
    const { text, data } = await quirk("comments");
    expect(text.split("\n").filter((line) => line.startsWith(":"))).toHaveLength(data.length);
  });

  test("bom", async () => {
    const { bytes, chunks } = await quirk("bom");
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(gathered(chunks).finish).toBe("stop");
  });

  test("split-utf8: reads end inside characters, and nothing is lost", async () => {
    const body = said("水水 [simulator: echo quirk=split-utf8]");
    const { reads, chunks } = await streamed(simulator, body);
    const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
    expect(reads.filter((read) => isContinuation(read[0])).length).toBeGreaterThan(0);
    expect(gathered(chunks).content).toBe("水水");
  });
});

describe("chunks", () => {
  test("empty-choices-first", async () => {
    const { chunks } = await quirk("empty-choices-first");
    expect([chunks[0].choices, chunks[0].usage]).toEqual([[], null]);
  });

  test("empties", async () => {
    const { chunks } = await quirk("empties");
    const deltas = chunks.slice(0, -2).map((chunk) => chunk.choices[0].delta);
    expect(deltas.every((delta) => delta.role === "assistant" && delta.tool_calls.length === 0)).toBe(true);
  });

  test("text-with-finish", async () => {
    const { chunks } = await quirk("text-with-finish");
    expect(chunks.at(-2).choices[0]).toMatchObject({ delta: { content: expect.any(String) }, finish_reason: "stop" });
  });

  test("usage-on-finish, usage-after", async () => {
    const on = (await quirk("usage-on-finish")).chunks.at(-1);
    expect([on.choices[0].finish_reason, on.usage.completion_tokens > 0]).toEqual(["stop", true]);
    const after = (await quirk("usage-after")).chunks.slice(-2);
    expect(after[0].choices[0].finish_reason).toBe("stop");
    expect(after[1].choices[0]).toMatchObject({ delta: {}, finish_reason: null });
    expect(after[1].usage.completion_tokens).toBeGreaterThan(0);
  });

  test("reasoning-field, reasoning-after-text", async () => {
    const { chunks } = await quirk("reasoning-field");
    expect(chunks.some((chunk) => chunk.choices[0]?.delta.reasoning)).toBe(true);
    const body = await whole(simulator, said("[simulator: quirk=reasoning-field]"));
    expect(body.choices[0].message.reasoning).toEqual(expect.any(String));
    const kinds = kindsIn((await quirk("reasoning-after-text")).chunks);
    expect(kinds.indexOf("reasoning_content")).toBeGreaterThan(kinds.lastIndexOf("content"));
  });
});

describe("tool calls", () => {
  test("without a quirk: a head, then fragments, with their index", async () => {
    const { chunks } = await streamed(simulator, { ...said("[simulator: calls=2]"), tools });
    const fragments = first(chunks);
    expect(fragments.filter((call) => call.id)).toHaveLength(2);
    const called = { name: "get_weather", arguments: "" };
    expect(fragments[0]).toMatchObject({ index: 0, type: "function", function: called });
    expect(gathered(chunks).calls.map((call: Wire) => JSON.parse(call.arguments))).toHaveLength(2);
  });

  test("whole-tool-call, two-calls-one-chunk", async () => {
    const [one, ...none] = calls((await quirk("whole-tool-call")).chunks);
    expect([one.length, none.length]).toEqual([1, 0]);
    expect(JSON.parse(one[0].function.arguments)).toHaveProperty("city");
    const [two, ...more] = calls((await quirk("two-calls-one-chunk")).chunks);
    expect([two.length, more.length]).toEqual([2, 0]);
  });

  test("interleaved-tools", async () => {
    const order = first((await quirk("interleaved-tools")).chunks).map((call) => call.index);
    expect(order.slice(0, 4)).toEqual([0, 1, 0, 1]);
  });

  test("repeated-ids, same-ids, ids-missing", async () => {
    const repeated = first((await quirk("repeated-ids")).chunks);
    expect(repeated.every((call) => call.id && call.function.name)).toBe(true);
    const same = first((await quirk("same-ids")).chunks).filter((call) => call.id);
    expect([same.length, new Set(same.map((call) => call.id)).size]).toEqual([2, 1]);
    const missing = first((await quirk("ids-missing")).chunks);
    expect(missing.some((call) => "id" in call)).toBe(false);
  });

  test("index-always-0, index-missing", async () => {
    const zero = first((await quirk("index-always-0")).chunks);
    expect(new Set(zero.map((call) => call.index))).toEqual(new Set([0]));
    expect(zero.filter((call) => call.id)).toHaveLength(2);
    expect(first((await quirk("index-missing")).chunks).some((call) => "index" in call)).toBe(false);
  });

  test("stop-with-tools, cut-arguments, text-after-tools", async () => {
    const stop = gathered((await quirk("stop-with-tools")).chunks);
    expect([stop.finish, stop.calls.length]).toEqual(["stop", 1]);
    const cut = gathered((await quirk("cut-arguments")).chunks);
    expect(cut.finish).toBe("length");
    expect(() => JSON.parse(cut.calls[0].arguments)).toThrow();
    const after = kindsIn((await quirk("text-after-tools")).chunks);
    expect(after.indexOf("content")).toBeGreaterThan(after.lastIndexOf("tool_calls"));
  });
});
