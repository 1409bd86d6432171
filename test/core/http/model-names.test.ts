/**
 * Aliases and retirements of models over real sockets: the model to which a name leads, on every operation, and the
 * announcements that clients get.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newKey } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { errorIn, responseIn, talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);

const modelOf = (id: string, fields: Record<string, unknown> = {}) => ({
  ...{ id, created: 1790000000, context_window: 8192, prices: { input: 0.001, output: 0.002 } },
  routes: [{ upstream: "simulator", model: id }],
  ...fields,
});
const moved = { retires_at: "2020-03-01", replaced_by: "acme/between", redirect: true };
const configOf = (...models: object[]) => `metering: { currency: USD }\nmodels: ${JSON.stringify(models)}\n`;
const config = configOf(
  modelOf("acme/writer-2", { aliases: ["acme/writer", "acme/writer:latest"], extra_params: ["top_k"] }),
  modelOf("acme/leaving", {
    ...{ aliases: ["acme/soon"], deprecated_at: "2026-01-31", retires_at: "2999-12-31", replaced_by: "acme/writer-2" },
  }),
  modelOf("acme/gone", { retires_at: "2020-02-29T12:00:00Z", replaced_by: "acme/between" }),
  modelOf("acme/between", { ...moved, replaced_by: "acme/writer-2" }),
  modelOf("acme/moved", { ...moved, aliases: ["acme/mv"] }),
  modelOf("acme/lost", { retires_at: "2020-03-01" }),
);

const service = await startSluice({ config });
afterAll(() => service.stop());

const keyFor = async (model: string) => (await newKey(service, service.organization, "--models", model)).key;
const keys = { "acme/writer": await keyFor("acme/writer"), "acme/writer-2": await keyFor("acme/writer-2") };
const oldKey = await keyFor("acme/moved");

const says = [{ role: "user", content: "[simulator: tokens=3]" }];
const chat = "/v1/chat/completions";

type Headers = Record<string, string | null>;
const announcement = (headers: Headers) => ["deprecation", "sunset", "link"].map((name) => headers[name] ?? null);
const announced = ({ headers }: Response) => announcement(Object.fromEntries(headers));

/**
 * The parts of an answer that tell a client about the requested model. `model` is the name in the answer; an answer to
 * the counting of tokens has none.
 */
interface Told {
  status: number;
  announced: (string | null)[];
  model?: string;
  message?: string | undefined;
  requestId: string;
}

async function overHttp(path: string, body: object, key: string): Promise<Told> {
  const response = await service.post(path, body, { key });
  const text = await response.text();
  const model = /"model":"([^"]+)"/.exec(text)?.[1];
  const message = response.status === 200 ? undefined : (JSON.parse(text).error.message as string);
  const requestId = requestIdOf(response);
  return { status: response.status, announced: announced(response), requestId, ...(model ? { model } : {}), message };
}

/** Over a WebSocket, the first event alone has the contents of an HTTP answer's headers. */
async function overWebSocket(model: string, key: string): Promise<Told> {
  using client = await talk(service.url, { authorization: `Bearer ${key}` });
  const events = await client.create({ model, input: "x" });
  const [first, ...others] = events as ((typeof events)[number] & { headers?: Headers })[];
  expect(others.filter((event) => Object.hasOwn(event, "headers"))).toEqual([]);
  const told = { announced: announcement(first!.headers ?? {}), requestId: first!.request_id ?? "" };
  if (first!.type !== "error") return { ...told, status: 200, model: responseIn(events).model };
  const { status, message } = errorIn(events);
  return { ...told, status, message };
}

type Ask = (model: string, key: string) => Promise<Told>;
const answering: Record<string, Ask> = {
  chat: (model, key) => overHttp(chat, { model, messages: says }, key),
  "a stream of chat": (model, key) => overHttp(chat, { model, messages: says, stream: true }, key),
  Messages: (model, key) => overHttp("/v1/messages", { model, messages: says, max_tokens: 9 }, key),
  Responses: (model, key) => overHttp("/v1/responses", { model, input: says[0]!.content }, key),
  WebSocket: overWebSocket,
};
const counting: Record<string, Ask> = {
  count_tokens: (model, key) => overHttp("/v1/messages/count_tokens", { model, messages: says }, key),
  input_tokens: (model, key) => overHttp("/v1/responses/input_tokens", { model, input: "x" }, key),
};

const nothing = [null, null, null];
const linkTo = (name: string) => `</v1/models/acme%2F${name}>; rel="successor-version"`;
const isLeaving = ["@1769817600", "Tue, 31 Dec 2999 00:00:00 GMT", linkTo("writer-2")];
const isGone = ["@1582977600", "Sat, 29 Feb 2020 12:00:00 GMT", linkTo("between")];
const isMoved = ["@1583020800", "Sun, 01 Mar 2020 00:00:00 GMT", linkTo("between")];
const isLost = ["@1583020800", "Sun, 01 Mar 2020 00:00:00 GMT", null];

describe.each(Object.entries({ ...answering, ...counting }))("at %s", (door, ask) => {
  test.each([
    ["an alias", "acme/writer", "acme/writer-2", nothing],
    ["another alias", "acme/writer:latest", "acme/writer-2", nothing],
    ["a model that is to be retired", "acme/leaving", "acme/leaving", isLeaving],
    ["the alias of one that is to be retired", "acme/soon", "acme/leaving", isLeaving],
    ["a redirected model", "acme/moved", "acme/writer-2", isMoved],
    ["the alias of a redirected model", "acme/mv", "acme/writer-2", isMoved],
  ])("%s, %s, is answered by %s, and what is to come is announced", async (_, name, id, announced) => {
    const told = await ask(name, service.key);
    expect(told).toMatchObject({ status: 200, announced });
    if (door in counting) return;
    // The answer repeats the name that was requested, and the receipt has the id.
    expect(told.model).toBe(name);
    expect((await endedReceipt(service, told.requestId)).model).toBe(id);
  });

  const inPlace = "The model 'acme/gone' was retired on 2020-02-29. Use 'acme/writer-2' in its place.";
  test.each([
    ["a retired model", "acme/gone", isGone, inPlace],
    ["one without a replacement", "acme/lost", isLost, "GET /v1/models lists"],
    ["an unknown model", "acme/unknown", nothing, "'acme/unknown'"],
  ])("%s, %s, is an error with 404 that says what to use instead", async (_, name, announced, words) => {
    const told = await ask(name, service.key);
    expect(told).toMatchObject({ status: 404, announced, message: expect.stringContaining(words) });
  });

  test("an alias and its id are one model to a limited key, whichever of them it was limited to", async () => {
    for (const key of Object.values(keys)) {
      expect(await ask("acme/writer:latest", key)).toMatchObject({ status: 200 });
      expect(await ask("acme/writer-2", key)).toMatchObject({ status: 200 });
      // The error announces that the model is to be retired, too.
      expect(await ask("acme/leaving", key)).toMatchObject({ status: 403, announced: isLeaving });
    }
  });

  test("a key needs the model that answers", async () => {
    expect((await ask("acme/moved", oldKey)).status).toBe(403);
    expect((await ask("acme/moved", keys["acme/writer-2"])).status).toBe(200);
  });
});

test("an alias takes the fields that its model takes, and a refusal's receipt has the id", async () => {
  const ask = { model: "acme/writer", messages: says };
  expect((await service.post(chat, { ...ask, top_k: 3 })).status).toBe(200);
  const refused = await service.post(chat, { ...ask, top_q: 3 });
  expect(refused.status).toBe(400);
  expect((await endedReceipt(service, requestIdOf(refused))).model).toBe("acme/writer-2");
});

test("aliases are listed beside their ids, and retrieved with them, with what is announced", async () => {
  const list = (await (await service.fetch("/v1/models")).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toEqual([
    ...["acme/writer-2", "acme/writer", "acme/writer:latest", "acme/leaving", "acme/soon"],
  ]);
  const found = await service.fetch("/v1/models/acme%2Fwriter");
  expect(await found.json()).toMatchObject({
    ...{ id: "acme/writer", canonical_id: "acme/writer-2", aliases: ["acme/writer", "acme/writer:latest"] },
  });
  const headers = { "anthropic-version": "2023-06-01" };
  const messages = await service.fetch("/v1/models/acme/writer", { headers });
  expect(await messages.json()).toMatchObject({ id: "acme/writer" });
  const leaving = await service.fetch("/v1/models/acme/leaving");
  expect(announced(leaving)).toEqual(isLeaving);
  expect(await leaving.json()).toMatchObject({
    deprecated_at: "2026-01-31T00:00:00.000Z",
    retires_at: "2999-12-31T00:00:00.000Z",
    replaced_by: "acme/writer-2",
  });
});

test("an error about a field, of an engine and of a retrieved model announces, too; one about the key has no model", async () => {
  const ask = { model: "acme/soon", messages: says };
  const failing = { ...ask, messages: [{ role: "user", content: "[simulator: status=500]" }] };
  for (const [response, status, announcement] of [
    [await service.post(chat, { ...ask, top_q: 3 }), 400, isLeaving],
    [await service.post(chat, failing), 503, isLeaving],
    [await service.fetch("/v1/models/acme/gone"), 404, isGone],
    [await service.post(chat, ask, { key: null }), 401, nothing],
  ] as const)
    expect([response.status, announced(response)]).toEqual([status, [...announcement]]);
  using client = await talk(service.url, { authorization: `Bearer ${service.key}` });
  const events = await client.create({ model: "acme/leaving", input: "x", temperature: 9 });
  expect(errorIn(events)).toMatchObject({ status: 400, headers: { deprecation: isLeaving[0] } });
});

test("a model that is renamed, with its old id as an alias, keeps the limits that name the old id", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-names-"));
  const file = join(folder, "sluice.yaml");
  const saved = (...models: object[]) => writeFileSync(file, configOf(...models));
  saved(modelOf("acme/writer"), modelOf("other/small"));
  const node = await startSluice({ env: { SLUICE_CONFIG: file } });
  const { id, key } = await newKey(node, node.organization);
  const limit = (amount: string) => node.json("limit", "set", "key", id, `month=${amount}`, "--models", "acme/writer");
  await limit("0.000000001");
  const asked = async (model: string) => {
    const response = await node.post(chat, { model, messages: says }, { key });
    const { error } = (await response.json()) as { error?: { limited_models?: string } };
    return [response.status, error?.limited_models];
  };
  expect(await asked("acme/writer")).toEqual([429, "acme/writer"]);
  saved(modelOf("vendor/writer-2", { aliases: ["acme/writer"] }), modelOf("other/small"));
  node.signal("SIGHUP");
  await until(() => node.stderr().includes("configuration_reloaded"), 10_000, "the reload");
  for (const name of ["acme/writer", "vendor/writer-2"]) expect(await asked(name)).toEqual([429, "acme/writer"]);
  expect(await asked("other/small")).toEqual([200, undefined]);
  // The limit continues under the model's name, and the new id leads to it, too.
  expect(await limit("1")).toMatchObject({ unmatched_models: {} });
  const shown = await node.json("limit", "show", "key", id, "--model", "vendor/writer-2");
  expect(shown).toMatchObject({ models: { "acme/writer": { month: { amount: "1.000000000" } } } });
  expect(await asked("vendor/writer-2")).toEqual([200, undefined]);
  await node.stop();
  rmSync(folder, { recursive: true });
});

test("a reload changes aliases and retirements, and streams that were asked for by an old alias go on", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-names-"));
  const file = join(folder, "sluice.yaml");
  const saved = (...models: object[]) => writeFileSync(file, configOf(...models));
  saved(modelOf("acme/first", { aliases: ["acme/best"] }), modelOf("acme/second", { aliases: ["acme/other"] }));
  const node = await startSluice({ env: { SLUICE_CONFIG: file } });
  const ask = (model: string, more = {}) => node.post(chat, { model, messages: says, ...more });
  const answerer = async (model: string) => {
    const response = await ask(model);
    if (response.status !== 200) return response.status;
    return (await endedReceipt(node, requestIdOf(response))).model;
  };
  expect(await Promise.all(["acme/best", "acme/other"].map(answerer))).toEqual(["acme/first", "acme/second"]);
  const slow = [{ role: "user", content: "[simulator: tps=30 tokens=60]" }];
  const running = await ask("acme/best", { messages: slow, stream: true });
  saved(
    modelOf("acme/first", { retires_at: "2020-03-01", replaced_by: "acme/second", redirect: true }),
    modelOf("acme/second", { aliases: ["acme/best"] }),
  );
  node.signal("SIGHUP");
  await until(() => node.stderr().includes("configuration_reloaded"), 10_000, "the reload");
  expect(await Promise.all(["acme/best", "acme/other", "acme/first"].map(answerer))).toEqual([
    ...["acme/second", 404, "acme/second"],
  ]);
  expect(announced(await ask("acme/first"))[0]).toBe("@1583020800");
  const text = await running.text();
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(text).toContain('"model":"acme/best"');
  await node.stop();
  rmSync(folder, { recursive: true });
});
