/** POST /v1/responses/input_tokens over real sockets: counts the tokens of a response's input, free of charge. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { refusalOf } from "../../harness/engine.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const path = "/v1/responses/input_tokens";
const exact = "openai/gpt-oss-20b";
const estimated = "z-ai/glm-4.6";

const service = await startSluice();
afterAll(() => service.stop());

interface Usage {
  session: { reset_at: string };
}
type Init = Parameters<Sluice["post"]>[2];
const count = async (body: object, init: Init = {}) => {
  const response = await service.post(path, { model: exact, ...body }, init);
  expect(response.status).toBe(200);
  const { object, input_tokens } = (await response.json()) as { object: string; input_tokens: number };
  expect(object).toBe("response.input_tokens");
  return input_tokens;
};
const refusal = async (body: object, init: Init = {}) =>
  refusalOf(await service.post(path, { model: exact, ...body }, init));
const keyWith = async (...more: string[]) => (await newKey(service, service.organization, ...more)).key;

describe("a count", () => {
  test("is what the same messages are by Messages, of every form that an input has", async () => {
    const messages = [{ role: "user", content: "foo" }];
    const counted = await service.post("/v1/messages/count_tokens", { model: exact, messages });
    const { input_tokens } = (await counted.json()) as { input_tokens: number };
    expect(await count({ input: "foo" })).toBe(input_tokens);
    expect(await count({ input: messages })).toBe(input_tokens);
    expect(await count({ input: [{ type: "message", role: "user", content: "foo" }] })).toBe(input_tokens);
  });

  test("grows with instructions, tools and a summary of what was", async () => {
    const plain = await count({ input: "foo" });
    const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }];
    expect(await count({ input: "foo", instructions: "Answer in one sentence." })).toBeGreaterThan(plain);
    expect(await count({ input: "foo", tools })).toBeGreaterThan(plain);
    const compacted = { type: "compaction", encrypted_content: `compaction.1:${"word ".repeat(100)}` };
    expect(await count({ input: [compacted, { role: "user", content: "foo" }] })).toBeGreaterThan(plain + 100);
  });

  test("is an estimate where the tokenizer is not known", async () => {
    const text = "Every morning the gardener counts her tulips. ".repeat(100);
    const counted = await count({ model: estimated, input: text });
    expect(counted).toBeGreaterThan(text.length / 8);
    expect(counted).toBeLessThan(text.length / 2);
  });

  test("takes in the stored conversation and the items that it refers to", async () => {
    const first = { model: exact, input: `Remember this: ${"word ".repeat(50)}` };
    const response = (await (await service.post("/v1/responses", first)).json()) as ResponseObject;
    const alone = await count({ input: "foo" });
    const continued = await count({ input: "foo", previous_response_id: response.id });
    expect(continued).toBeGreaterThan(alone + 50);
    expect(await count({ previous_response_id: response.id })).toBeLessThan(continued);
    const reference = { type: "item_reference", id: response.output.at(-1)!.id };
    expect(await count({ input: [reference, { role: "user", content: "foo" }] })).toBeGreaterThan(alone);
  });

  test("needs a valid key and no scope, and opens no window", async () => {
    const key = await keyWith("--scopes", "usage:read");
    const idle = await newMember(service, "pro");
    expect(await count({ input: "foo" }, { key })).toBeGreaterThan(0);
    expect(await count({ input: "foo" }, { key: idle.key })).toBeGreaterThan(0);
    // The end of the session. While no session is open, the end moves with the clock.
    const sessionEnd = async () => {
      const usage = (await (await service.fetch("/v1/service/usage", { key: idle.key })).json()) as Usage;
      return usage.session.reset_at;
    };
    const end = await sessionEnd();
    await until(async () => (await sessionEnd()) !== end, 5_000, "another end of the session");
    const limited = await keyWith("--models", estimated);
    expect(await refusal({ input: "foo" }, { key: limited })).toEqual([403, "model_not_allowed", "model"]);
    expect((await service.post(path, { model: exact, input: "foo" }, { key: null })).status).toBe(401);
  });
});

describe("what is no request", () => {
  const strange: [string, object, (string | number | null)[]][] = [
    [
      "a foreign compaction",
      { input: [{ type: "compaction", encrypted_content: "x" }] },
      [400, "invalid_value", "input[0].encrypted_content"],
    ],
    [
      "what is not stored",
      { previous_response_id: "resp_x" },
      [400, "previous_response_not_found", "previous_response_id"],
    ],
    [
      "an item that is not stored",
      { input: [{ type: "item_reference", id: "msg_x" }] },
      [400, "previous_response_not_found", "input[0].id"],
    ],
  ];
  test.each(strange)("%s: refused by name", async (_, body, expected) => {
    expect(await refusal(body)).toEqual(expected);
  });
});
