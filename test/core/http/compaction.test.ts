/**
 * Compaction of a conversation, over real sockets: it is one inference request and returns one item, with which the
 * conversation can continue.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { OutputItem, ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import type { CompactedResponse } from "../../../src/features/responses/contract.ts";
import { startScriptedEngine, type Turn } from "../../clients/scripted-engine.ts";
import { errorOf, model, plainModel, refusalOf, smallModel, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { eventsOf, finalOf } from "../../harness/responses.ts";

setDefaultTimeout(60_000);

const path = "/v1/responses";
const trigger = { type: "compaction_trigger" };
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const talk = [user("Plan a trip to Oslo."), assistant("When?"), user("In May, by train.")];
const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }];
const summary = "Goal: a trip to Oslo in May, by train.";

const engine = startScriptedEngine();
const service = await startService({ engineUrl: engine.url });
afterAll(async () => {
  await service.stop();
  engine.stop();
});

const play = (...turns: Turn[]) => engine.play(turns);
const post = (body: object, at = path) => service.post(at, { model, store: false, ...body });
const answered = async <Answer = ResponseObject>(response: Response): Promise<Answer> => {
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
};
/** The messages of the engine's latest request: role and text of each. */
const told = () => engine.asked.at(-1)!.messages.map(({ role, content }): [string, string] => [role, toldIn(content)]);
const toldIn = (content: unknown) =>
  typeof content === "string"
    ? content
    : ((content as { text: string }[] | null) ?? []).map(({ text }) => text).join("");
const sealedIn = (output: readonly { type: string }[]): string[] =>
  (output as OutputItem[]).flatMap((item) => (item.type === "compaction" ? [item.encrypted_content] : []));
const receiptOf = (response: Response) => endedReceipt(service, requestIdOf(response));

describe("a conversation that ends in a trigger", () => {
  test.each([false, true])(
    "is answered by one item with its summary, metered like any answer (stream: %p)",
    async (stream) => {
      play({ reasoning: "I think.", text: summary });
      const response = await post({ input: [...talk, trigger], stream });
      expect(response.status).toBe(200);
      expect(response.headers.get("x-service-usage-session-percent")).not.toBeNull();
      const events = stream ? await eventsOf(response) : null;
      const whole = events ? finalOf(events) : ((await response.json()) as ResponseObject);
      expect(whole).toMatchObject({ status: "completed", usage: { input_tokens: 100 } });
      const id = expect.stringMatching(/^cmp_[0-9a-f]{36}$/);
      expect(whole.output).toEqual([{ id, type: "compaction", encrypted_content: `compaction.1:${summary}` }]);
      const done = (events ?? []).flatMap((event) => (event.type === "response.output_item.done" ? [event.item] : []));
      if (stream) expect(done).toEqual(whole.output);
      const receipt = await receiptOf(response);
      expect(receipt).toMatchObject({ operation: "responses", outcome: "completed", usage: { source: "reported" } });
      expect(nanosOf(receipt.cost.charged)).toBeGreaterThan(0);
    },
  );

  test("reaches the model whole with the instruction behind it, and without tools and formats", async () => {
    play({ text: summary });
    const text = { format: { type: "json_object" } };
    const called = [
      { type: "additional_tools", tools },
      { type: "function_call", call_id: "c1", name: "get_weather", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "4 degrees" },
    ];
    const asked = { tools, tool_choice: "required", text, instructions: "Be brief.", top_logprobs: 2 };
    await answered(await post({ ...asked, input: [...talk, ...called, trigger] }));
    const [, ...messages] = told();
    expect(told()[0]).toEqual(["system", "Be brief."]);
    expect(messages.map(([role]) => role)).toEqual(["user", "assistant", "user", "assistant", "tool", "user"]);
    const [, instruction] = messages.at(-1)!;
    for (const word of ["Goal", "Decisions", "Files and state", "Open ends", "Verbatim"])
      expect(instruction).toContain(word);
    const body = engine.asked[0] as unknown as Record<string, unknown>;
    for (const field of ["tools", "tool_choice", "response_format", "logprobs"]) expect(body[field]).toBeUndefined();
  });

  test("needs nothing of a model that has no tools", async () => {
    play({ text: summary });
    const whole = await answered(await post({ model: plainModel, tools, input: [...talk, trigger] }));
    expect(sealedIn(whole.output)).toHaveLength(1);
  });

  test("goes on from its item, which stands as a message where it is", async () => {
    play({ text: summary }, { text: "By train, in May." });
    const { output } = await answered(await post({ input: [...talk, trigger] }));
    await answered(await post({ input: [user("Hi."), ...output, user("How do I go?")] }));
    expect(told().map(([role]) => role)).toEqual(["user", "user", "user"]);
    expect(told()[1]![1]).toEndWith(summary);
    expect(told()[1]![1]).toContain("This summary stands in place of the conversation up to here.");
  });

  test("is cut where its cap ends it: the response says so, and so does the summary", async () => {
    play({ text: summary, finish: "length" });
    const whole = await answered(await post({ input: [...talk, trigger], max_output_tokens: 600 }));
    expect(whole).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
    const cut = `compaction.1:${summary}\n\n[This summary breaks off here, before its end.]`;
    expect(sealedIn(whole.output)).toEqual([cut]);
  });
});

describe("a model that writes no summary", () => {
  const call = { name: "get_weather", arguments: "{}" };
  const nothing: [string, Turn][] = [
    ["says nothing", {}],
    ["says blanks", { text: " \n\n\t ".repeat(20) }],
    ["only thinks", { reasoning: "I think about it." }],
    ["calls a tool", { calls: [call, call] }],
    ["is at its cap before a word", { reasoning: "I think.", finish: "length" }],
    ["breaks off before a word", { reasoning: "I think.", cut: true }],
  ];
  const doors: [string, object][] = [
    [path, { input: [...talk, trigger] }],
    [path, { input: [...talk, trigger], stream: true }],
    [`${path}/compact`, { input: talk }],
  ];
  test.each(nothing)("that %s: a failure that can be retried, and nothing is charged", async (_, turn) => {
    for (const [at, body] of doors) {
      play(turn, turn);
      const response = await post(body, at);
      expect(await refusalOf(response)).toEqual([503, "upstream_unavailable", null]);
      const { outcome, cost } = await receiptOf(response);
      expect([outcome, nanosOf(cost.charged)]).toEqual(["failed", 0]);
    }
  });

  test("but calls a tool beside it: the summary is what counts", async () => {
    play({ text: summary, calls: [call] });
    const { output } = await answered(await post({ input: [...talk, trigger] }));
    expect(sealedIn(output)).toEqual([`compaction.1:${summary}`]);
  });

  test("to its end: the stream fails, and its item is not done", async () => {
    play({ text: summary, cut: true });
    const events = await eventsOf(await post({ input: [...talk, trigger], stream: true }));
    expect(finalOf(events).status).toBe("failed");
    expect(events.map(({ type }) => type)).not.toContain("response.output_item.done");
  });
});

describe("a conversation beyond the context", () => {
  const line = "The gardener counts her tulips. ".repeat(20);
  const long = Array.from({ length: 40 }, (_, at) => [user(`${at}: ${line}`), assistant(`Noted ${at}.`)]).flat();
  const refuses = { code: "context_length_exceeded", message: "maximum context length" };
  const tooLong = [400, "context_length_exceeded", "input"];
  const left = (sealed: string | undefined) =>
    Number(/^compaction\.1:\[The (\d+) oldest messages .* left out\.\]\n\n/.exec(sealed ?? "")?.[1]);

  test("by far: the oldest turns are left out before the request, and the item says how many", async () => {
    play({ text: summary });
    const body = { model: smallModel, instructions: "Be brief.", input: [...long, trigger] };
    const { output } = await answered(await post(body));
    const count = left(sealedIn(output)[0]);
    const messages = told();
    // The three other messages are the instructions, the note that messages were left out, and the request for a
    // summary.
    expect(messages).toHaveLength(long.length - count + 3);
    expect(messages[0]).toEqual(["system", "Be brief."]);
    expect(messages[1]![1]).toContain(`${count} oldest messages`);
    expect(messages.at(-2)).toEqual(["assistant", "Noted 39."]);
    expect(messages.map(([, text]) => text).join("").length).toBeLessThan(4 * 4096);
    expect(messages.length).toBeGreaterThan(10);
  });

  test("by the engine's count: the request is repeated with less, until it fits", async () => {
    play({ refuses }, { refuses }, { text: summary });
    const response = await post({ input: [...long, trigger] });
    const { output } = await answered(response);
    const counts = engine.asked.map(({ messages }) => messages.length);
    expect(counts).toHaveLength(3);
    expect(counts[1]).toBeLessThan(counts[0]! * 0.6);
    expect(counts[2]).toBeLessThan(counts[1]! * 0.6);
    expect(left(sealedIn(output)[0])).toBe(long.length - (counts[2]! - 2));
    expect(await receiptOf(response)).toMatchObject({ outcome: "completed", usage: { input_tokens: 100 } });
  });

  test("by one message alone: refused as too long, and nothing is charged", async () => {
    play(...Array(8).fill({ refuses }));
    for (const stream of [false, true]) {
      const response = await post({ input: [user(line), trigger], stream });
      expect(await refusalOf(response)).toEqual(tooLong);
      expect(nanosOf((await receiptOf(response)).cost.charged)).toBe(0);
    }
    expect(engine.asked).toHaveLength(2);
    const far = await post({ model: smallModel, input: [user(line.repeat(2_000)), trigger] });
    expect(await refusalOf(far)).toEqual(tooLong);
    expect(engine.asked).toHaveLength(2);
  });

  test("that the engine never takes: the request is repeated a few times, and no more", async () => {
    play(...Array(40).fill({ refuses }));
    expect(await refusalOf(await post({ input: [...long, trigger] }))).toEqual(tooLong);
    expect(engine.asked.length).toBeLessThanOrEqual(5);
  });
});

describe("an item that is no compaction of this service", () => {
  const item = (encrypted_content?: unknown) => ({ type: "compaction", encrypted_content });
  const sealed = "input[0].encrypted_content";
  const strange: [string, unknown[], string, string?][] = [
    ["another service's", [item("gAAAAABo9x"), user("hi")], sealed],
    ["reasoning's", [item("reasoning.1:{}"), user("hi")], sealed],
    ["a later version's", [item("compaction.2:x"), user("hi")], sealed],
    ["the mark alone", [item("compaction.1:"), user("hi")], sealed],
    ["blanks", [item("compaction.1: \n"), user("hi")], sealed],
    ["nothing", [item(), user("hi")], sealed, "missing_field"],
    ["null", [item(null), user("hi")], sealed],
    ["a number", [item(7), user("hi")], sealed],
    ["an object", [item({ a: 1 }), user("hi")], sealed],
    ["a trigger before the end", [trigger, user("hi")], "input[0]"],
    ["two triggers", [user("hi"), trigger, trigger], "input[1]"],
    ["a trigger alone", [trigger], "input"],
  ];
  test.each(strange)("%s: refused, before any engine is asked", async (_, input, param, code = "invalid_value") => {
    play({ text: "hello" });
    expect(await refusalOf(await post({ input }))).toEqual([400, code, param]);
    expect(engine.asked).toHaveLength(0);
  });

  test("says what to send instead", async () => {
    const { message } = await errorOf(await post({ input: [item("gAAAAABo9x"), user("hi")] }));
    expect(message).toContain("what another service compacted cannot be read here");
  });
});

describe("a stored conversation", () => {
  const stored = (body: object) => post({ store: true, ...body });

  test("goes on from its summary, and from nothing before it", async () => {
    play({ text: "When?" }, { text: summary }, { text: "Good." }, { text: "Yes." });
    const first = await answered(await stored({ input: "Plan a trip to Oslo." }));
    const short = await answered(await stored({ input: [trigger], previous_response_id: first.id }));
    expect(told().map(([role]) => role)).toEqual(["user", "assistant", "user"]);
    expect(short.previous_response_id).toBe(first.id);
    const third = await answered(await stored({ input: "Is it good?", previous_response_id: short.id }));
    await answered(await stored({ input: "Sure?", previous_response_id: third.id }));
    expect(told().map(([role, text]) => [role, text.slice(-summary.length)])).toEqual([
      ["user", summary],
      ["user", "Is it good?"],
      ["assistant", "Good."],
      ["user", "Sure?"],
    ]);
  });

  test("is there to be fetched: the response, its input and its item by reference", async () => {
    play({ text: summary }, { text: "Good." });
    const short = await answered(await stored({ input: [...talk, trigger] }));
    expect(await answered(await service.fetch(`${path}/${short.id}`))).toEqual(short);
    const items = await service.fetch(`${path}/${short.id}/input_items?order=asc`);
    const { data } = await answered<{ data: { id: string; type: string }[] }>(items);
    expect(data.map(({ type }) => type)).toEqual(["message", "message", "message", "compaction_trigger"]);
    await answered(await stored({ input: [{ type: "item_reference", id: short.output[0]!.id }, user("Good?")] }));
    expect(told()[0]![1]).toEndWith(summary);
    const misplaced = await stored({ input: [{ type: "item_reference", id: data.at(-1)!.id }, user("hi")] });
    expect(await refusalOf(misplaced)).toEqual([400, "invalid_value", "input[0]"]);
  });
});

describe("POST /v1/responses/compact", () => {
  const compact = (body: object, headers: Record<string, string> = {}) =>
    service.post(`${path}/compact`, { model, ...body }, { headers });

  test("is not repeated by an idempotency key: it is refused in words, before any engine is asked", async () => {
    play({ text: summary });
    const refused = await compact({ input: talk }, { "idempotency-key": "k1" });
    expect(await refusalOf(refused)).toEqual([400, "unsupported_feature", "idempotency-key"]);
    expect(engine.asked).toHaveLength(0);
  });

  test("answers the user's messages, then the summary, is metered, and stores nothing", async () => {
    play({ reasoning: "I think.", text: summary }, { text: "Good." });
    const response = await compact({ input: talk, instructions: "Be brief.", tools: [], parallel_tool_calls: false });
    const whole = await answered<CompactedResponse>(response);
    expect(whole).toMatchObject({ object: "response.compaction", usage: { input_tokens: 100 } });
    expect(whole.output).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "Plan a trip to Oslo." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "In May, by train." }] },
      { type: "compaction", encrypted_content: `compaction.1:${summary}` },
    ]);
    expect(new Set(whole.output.map(({ id }) => id)).size).toBe(3);
    expect(told().map(([role]) => role)).toEqual(["system", "user", "assistant", "user", "user"]);
    expect(await receiptOf(response)).toMatchObject({ operation: "responses", outcome: "completed", stream: false });
    expect((await service.fetch(`${path}/${whole.id}`)).status).toBe(404);
    await answered(await post({ input: [...whole.output, user("Good?")] }));
    expect(told().map(([role]) => role)).toEqual(["user", "user", "user", "user"]);
  });

  test("takes a text, a stored response, a trigger, and what was compacted before", async () => {
    play({ text: "When?" }, ...Array(4).fill({ text: summary }));
    const first = await answered(await post({ store: true, input: "Plan a trip to Oslo." }));
    const types = async (body: object) =>
      (await answered<CompactedResponse>(await compact(body))).output.map(({ type }) => type);
    expect(await types({ input: "Plan a trip." })).toEqual(["message", "compaction"]);
    expect(await types({ previous_response_id: first.id })).toEqual(["message", "compaction"]);
    expect(told().map(([role]) => role)).toEqual(["user", "assistant", "user"]);
    expect(await types({ input: [...talk, trigger] })).toEqual(["message", "message", "compaction"]);
    const compacted = { type: "compaction", encrypted_content: "compaction.1:old" };
    expect(await types({ input: [compacted, user("hi")] })).toEqual(["message", "compaction"]);
    expect(told()[0]![1]).toEndWith("old");
  });

  test("retains the newest messages, as far as they leave room", async () => {
    play({ text: summary });
    const messages = Array.from({ length: 10 }, (_, at) => user(`${at}${"x".repeat(5_000)}`));
    const { output } = await answered<CompactedResponse>(await compact({ input: messages }));
    const kept = output.flatMap((item) => (item.type === "message" ? [String(item.content[0]!.text)[0]] : []));
    expect(kept).toEqual(["4", "5", "6", "7", "8", "9"]);
  });

  test("refuses what it cannot do, and says what is missing", async () => {
    play({ text: summary });
    const orphan = { type: "function_call_output", call_id: "c", output: "x" };
    for (const [body, ...expected] of [
      [{}, 400, "missing_field", "input"],
      [{ input: null }, 400, "missing_field", "input"],
      [{ input: [] }, 400, "invalid_value", "input"],
      [{ input: talk, stream: true }, 400, "unsupported_feature", "stream"],
      [{ input: [trigger] }, 400, "invalid_value", "input"],
      [{ input: [orphan] }, 400, "invalid_value", "input[0].call_id"],
      [{ previous_response_id: "resp_x" }, 400, "previous_response_not_found", "previous_response_id"],
    ] as const)
      expect(await refusalOf(await compact(body))).toEqual(expected);
    expect(engine.asked).toHaveLength(0);
    for (const at of ["compact", "input_tokens"])
      expect((await service.fetch(`${path}/${at}`)).headers.get("allow")).toBe("POST");
  });
});
