/**
 * Stored responses, over real sockets: they can be continued, fetched and deleted, for a limited time. For the callers
 * that may do so, see whose-responses.test.ts.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Money } from "../../../src/core/inference/money.ts";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { model, refusalOf, type Service, startService } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { nanosOf } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { eventsOf, finalOf, textOf } from "../../harness/responses.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const path = "/v1/responses";
const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
const tools = [{ type: "function", name: "get_weather", parameters }];

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop());

const post = (body: object) => service.post(path, { model, ...body });
const answered = async (body: object) => {
  const response = await post(body);
  expect(response.status).toBe(200);
  return (await response.json()) as ResponseObject;
};
const fetched = (id: string, init: Parameters<Service["fetch"]>[1] = {}) => service.fetch(`${path}/${id}`, init);
const told = () =>
  (service.engine.requests.at(-1)!.body as { messages: { role: string; content: unknown }[] }).messages;

const gone = [400, "previous_response_not_found", "previous_response_id"];

describe("a conversation goes on from a response", () => {
  test.each([false, true])("by its id, turn after turn, with tools between (stream: %p)", async (stream) => {
    const say = async (body: object) =>
      stream ? finalOf(await eventsOf(await post({ ...body, stream: true }))) : answered(body);
    const first = await say({ input: "[simulator: echo] one", instructions: "Be brief." });
    const second = await say({ input: "[simulator: calls=1] two", previous_response_id: first.id, tools });
    const call = second.output.find((item) => item.type === "function_call");
    const result = { type: "function_call_output", call_id: call?.call_id, output: "4 degrees" };
    const third = await say({ input: [result], previous_response_id: second.id, tools });
    expect(textOf(third)).toContain("4 degrees");
    expect(third.previous_response_id).toBe(second.id);
    // Instructions are not carried over to the next turn; everything else is, once.
    expect(told()).toMatchObject([
      { role: "user", content: "[simulator: echo] one" },
      { role: "assistant", content: "one" },
      { role: "user", content: "[simulator: calls=1] two" },
      { role: "assistant" },
      { role: "tool", content: "4 degrees" },
    ]);
    expect(third.usage!.input_tokens).toBeGreaterThan(first.usage!.input_tokens);
  });

  test("by references to its items, as the AI SDK replays them", async () => {
    const first = await answered({ input: "[simulator: calls=1 reasoning=5] go", tools });
    const references = first.output.map(({ id }) => ({ type: "item_reference", id }));
    const call = first.output.find((item) => item.type === "function_call");
    const result = { type: "function_call_output", call_id: call?.call_id, output: "4 degrees" };
    const second = await answered({ input: [{ role: "user", content: "go" }, ...references, result], tools });
    expect(textOf(second)).toContain("4 degrees");
    // Items that were sent by reference are stored as items, and may be referred to again, as may items of inputs.
    const listed = (await (await service.fetch(`${path}/${second.id}/input_items?order=asc`)).json()) as {
      data: { id: string; type: string }[];
    };
    expect(listed.data.map(({ type }) => type)).toEqual([
      "message",
      ...first.output.map(({ type }) => type),
      "function_call_output",
    ]);
    const again = listed.data.map(({ id }) => ({ type: "item_reference", id }));
    const third = await answered({ input: [...again, { role: "user", content: "[simulator: echo] more" }], tools });
    expect(textOf(third)).toBe("more");
    expect(told().map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
  });

  test("in branches, and again from a response that others have gone on from", async () => {
    const first = await answered({ input: "[simulator: echo] one" });
    for (const word of ["left", "right"]) {
      const next = await answered({ input: `[simulator: echo] ${word}`, previous_response_id: first.id });
      expect(textOf(next)).toBe(word);
      expect(told()).toHaveLength(3);
    }
  });

  test("at once: who has its end can go on from it", async () => {
    const one = async (index: number) => {
      const first = finalOf(await eventsOf(await post({ input: `[simulator: echo] ${index}`, stream: true })));
      return (await post({ input: "[simulator: echo] x", previous_response_id: first.id })).status;
    };
    const all = await Promise.all(Array.from({ length: 30 }, (_, index) => one(index)));
    expect(new Set(all)).toEqual(new Set([200]));
  });

  test("holds as much by its id as with all its items, whatever it is written in", async () => {
    const held = async (body: object) => {
      const response = await post({ ...body, max_output_tokens: 1 });
      await response.text();
      const path = `/v1/service/requests/${response.headers.get("x-service-request-id")}`;
      return nanosOf(((await (await service.fetch(path)).json()) as { cost: { held: Money } }).cost.held);
    };
    const long = "水が流れる。".repeat(400);
    const first = await answered({ input: long });
    const whole = [{ role: "user", content: long }, ...first.output, { role: "user", content: "more" }];
    const byItems = await held({ input: whole, store: false });
    const byId = await held({ input: "more", previous_response_id: first.id, store: false });
    expect(byId / byItems).toBeWithin(0.9, 1.2);
  });

  test("that the cap cut short", async () => {
    const first = await answered({ input: "[simulator: tokens=50] x", max_output_tokens: 5 });
    expect(first.status).toBe("incomplete");
    expect((await post({ input: "go on", previous_response_id: first.id })).status).toBe(200);
  });
});

describe("no response can be continued", () => {
  test("where the request said store: false, though it went on from a stored one", async () => {
    const first = await answered({ input: "one" });
    const second = await answered({ input: "two", previous_response_id: first.id, store: false });
    expect(second.store).toBe(false);
    expect(await refusalOf(await post({ input: "x", previous_response_id: second.id }))).toEqual(gone);
    expect(await refusalOf(await fetched(second.id))).toEqual([404, "response_not_found", "id"]);
  });

  test("from what failed, and what never was", async () => {
    const failed = finalOf(await eventsOf(await post({ input: "[simulator: cut-after=3] x", stream: true })));
    expect(failed.status).toBe("failed");
    for (const id of [failed.id, `resp_${"0".repeat(32)}`, "resp_x", "x", "🤷", "resp_".repeat(1000)])
      expect(await refusalOf(await post({ input: "x", previous_response_id: id }))).toEqual(gone);
    for (const id of ["rs_1", `msg_${"0".repeat(36)}`, `msg_${"0".repeat(39)}`, "💥"]) {
      const input = [
        { role: "user", content: "x" },
        { type: "item_reference", id },
      ];
      expect(await refusalOf(await post({ input }))).toEqual([400, "previous_response_not_found", "input[1].id"]);
    }
  });

  test("a model that does not exist is refused first, as the order of checks says", async () => {
    const refused = await post({ model: "acme/none", input: "x", previous_response_id: "resp_x" });
    expect(await refusalOf(refused)).toEqual([404, "model_not_found", "model"]);
  });

  test("after it was deleted, nor from what went on from it", async () => {
    const first = await answered({ input: "one" });
    const second = await answered({ input: "two", previous_response_id: first.id });
    const deleted = await fetched(first.id, { method: "DELETE" });
    expect(await deleted.json()).toEqual({ id: first.id, object: "response", deleted: true });
    expect(await refusalOf(await fetched(first.id, { method: "DELETE" }))).toEqual([404, "response_not_found", "id"]);
    expect(await refusalOf(await post({ input: "x", previous_response_id: second.id }))).toEqual(gone);
  });

  test("a result whose call is in no stored turn is refused by its path", async () => {
    const { id } = await answered({ input: "one" });
    const input = [{ type: "function_call_output", call_id: "call_none", output: "x" }];
    const refused = await post({ input, previous_response_id: id, tools });
    expect(await refusalOf(refused)).toEqual([400, "invalid_value", "input[0].call_id"]);
  });
});

describe("a stored response", () => {
  test("is fetched as its client got it, streamed or not", async () => {
    const whole = await answered({ input: "one", metadata: { a: "b" }, instructions: "Be brief." });
    expect(await (await fetched(whole.id)).json()).toEqual(whole);
    const streamed = finalOf(await eventsOf(await post({ input: "[simulator: reasoning=3] one", stream: true })));
    expect(await (await fetched(streamed.id)).json()).toEqual(streamed);
    expect((await fetched(whole.id, { method: "HEAD" })).status).toBe(200);
    expect(await refusalOf(await fetched(`${whole.id}?stream=true`))).toEqual([400, "unsupported_feature", "stream"]);
  });

  test("lists its input by pages, the newest first unless asked", async () => {
    const input = ["one", "two", "three"].map((content) => ({ role: "user", content }));
    const { id } = await answered({ input });
    const page = async (query: string) =>
      (await (await fetched(`${id}/input_items${query}`)).json()) as {
        data: { id: string; content: unknown }[];
        has_more: boolean;
        last_id: string;
      };
    const text = (content: string) => [{ type: "input_text", text: content }];
    expect((await page("")).data.map(({ content }) => content)).toEqual(["three", "two", "one"].map(text));
    const first = await page("?order=asc&limit=2");
    expect(first).toMatchObject({ has_more: true, data: [{ content: text("one") }, { content: text("two") }] });
    const rest = await page(`?order=asc&limit=2&after=${first.last_id}`);
    expect(rest).toMatchObject({ has_more: false, data: [{ content: text("three") }] });
    for (const query of ["?limit=0", "?limit=101", "?limit=x", "?order=up", "?after=msg_none"]) {
      const [status, code, param] = await refusalOf(await fetched(`${id}/input_items${query}`));
      expect([status, code, param]).toEqual([400, "invalid_value", /\w+/.exec(query)![0]]);
    }
  });
});

/** Runs a test with a service of its own. */
async function withService(options: Parameters<typeof startService>[0], work: (of: Service) => Promise<void>) {
  const of = await startService(options);
  try {
    await work(of);
  } finally {
    await of.stop();
  }
}

test("what was kept is there after a restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-kept-"));
  const database = await migratedDatabase();
  const sluice = { store: "pglite" as const, dataDir, env: { DATABASE_URL: database.url } };
  let asked = { key: "", id: "" };
  await withService({ sluice }, async (first) => {
    const { key } = await newMember(first, "unlimited");
    const response = await first.post(path, { model, input: "remember" }, { key });
    asked = { key, id: ((await response.json()) as ResponseObject).id };
  });
  await withService({ sluice }, async (second) => {
    const body = { model, input: "x", previous_response_id: asked.id };
    expect((await second.post(path, body, { key: asked.key })).status).toBe(200);
  });
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

test("where the operator keeps nothing answers say store: false, whatever was asked, and nothing is found", () =>
  withService({ more: "responses: { store: false }" }, async (none) => {
    const answer = (await (await none.post(path, { model, input: "x", store: true })).json()) as ResponseObject;
    expect(answer.store).toBe(false);
    const next = await none.post(path, { model, input: "x", previous_response_id: answer.id });
    expect(await refusalOf(next)).toEqual(gone);
    expect((await none.fetch(`${path}/${answer.id}`)).status).toBe(404);
  }));

test("a response larger than an organization may keep is answered, and not kept; the oldest make room", () =>
  withService({ more: "responses: { organization_bytes_max: 6000 }" }, async (tight) => {
    const say = async (text: string) =>
      (await (await tight.post(path, { model, input: text })).json()) as ResponseObject;
    const large = await say("x".repeat(7000));
    expect(large.status).toBe("completed");
    expect((await tight.fetch(`${path}/${large.id}`)).status).toBe(404);
    await until(() => tight.stderr().includes("response_unkept"), 5000, "the log to say so");
    const all = [];
    for (let index = 0; index < 8; index++) all.push(await say(`small ${index}`));
    const statuses = await Promise.all(all.map(async ({ id }) => (await tight.fetch(`${path}/${id}`)).status));
    expect([statuses[0], statuses.at(-1)]).toEqual([404, 200]);
  }));

test("a stored conversation larger than a body may be is refused, by name", () =>
  withService({ limits: "{ body_bytes_max: 4000 }" }, async (tight) => {
    let previous: string | undefined;
    let refused: Response | null = null;
    for (let index = 0; index < 6 && !refused; index++) {
      const body = { model, input: "y".repeat(1500), previous_response_id: previous };
      const response = await tight.post(path, body);
      if (response.status === 200) previous = ((await response.json()) as ResponseObject).id;
      else refused = response;
    }
    expect(await refusalOf(refused!)).toEqual([400, "context_length_exceeded", "previous_response_id"]);
  }));
