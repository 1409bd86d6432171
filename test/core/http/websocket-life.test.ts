/**
 * A WebSocket on /v1/responses, over real sockets: each response is a request like any other, with one record. Also:
 * who may open a socket, how many there may be, how large a message may be, and how a socket ends.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { rawClient } from "../../harness/raw-client.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { eventsOf, textOf } from "../../harness/responses.ts";
import { until } from "../../harness/until.ts";
import { errorIn, responseIn, type ServerEvent, type Talk, talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);

const upgrading = {
  ...{ connection: "Upgrade", upgrade: "websocket" },
  ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
};
const bytes_max = 64 * 1024;
const asks = (text: string, more: object = {}) => ({ model, input: text, ...more });
const slow = asks("[simulator: tokens=20 tps=40]", { store: false });
const slower = asks("[simulator: tokens=80 tps=20]", { store: false });

const service = await startService({
  limits: `{ websocket_frame_bytes_max: ${bytes_max} }`,
  engine: { directives: "", namesModel: false },
});
afterAll(() => service.stop());

const connect = (key = service.key, of = service) => talk(of.url, { authorization: `Bearer ${key}` });

async function refusal(headers: Record<string, string>, of = service): Promise<[number, string | null]> {
  const response = await of.fetch("/v1/responses", { headers: { ...upgrading, ...headers }, key: null });
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code];
}

async function openSockets(of = service): Promise<number> {
  const text = await (await of.fetch("/metrics", { key: null })).text();
  return Number(/^http_open_websockets (\d+)$/m.exec(text)?.[1]);
}

describe("an upgrade", () => {
  test("without a valid key or its scope is refused with the true status", async () => {
    expect(await refusal({})).toEqual([401, "missing_api_key"]);
    expect(await refusal({ authorization: "Bearer nobody" })).toEqual([401, "invalid_api_key"]);
    const { key } = await newMember(service, "unlimited", "--scopes", "models:read");
    expect(await refusal({ authorization: `Bearer ${key}` })).toEqual([403, "missing_scope"]);
  });

  test("names its request in its head", async () => {
    const client = await rawClient(service.url);
    const head = { host: "localhost", authorization: `Bearer ${service.key}`, ...upgrading };
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
    await client.write(`GET /v1/responses HTTP/1.1\r\n${lines.join("")}\r\n`);
    const answer = await client.read(/\r\n\r\n/);
    expect(answer).toStartWith("HTTP/1.1 101 ");
    expect(answer.toLowerCase()).toContain("x-service-request-id: req_");
    client.leave();
    await until(async () => (await openSockets()) === 0);
  });

  test("in another form, or of a key with many, is answered with 426", async () => {
    const authorization = `Bearer ${service.key}`;
    expect(await refusal({ authorization, "sec-websocket-key": "" })).toEqual([426, "upgrade_not_supported"]);
    const all: Talk[] = [];
    while (all.length < 64) all.push(await connect());
    expect(await openSockets()).toBe(64);
    expect(await refusal({ authorization })).toEqual([426, "upgrade_not_supported"]);
    for (const client of all) client[Symbol.dispose]();
    await until(async () => (await openSockets()) === 0);
    using again = await connect();
    expect(again.state).toBe("open");
  });

  test("of a service without WebSockets is answered with 426, and POST works", async () => {
    const without = await startService({ limits: "{ websocket_frame_bytes_max: 0 }" });
    expect(await refusal({ authorization: `Bearer ${without.key}` }, without)).toEqual([426, "upgrade_not_supported"]);
    expect((await without.post("/v1/responses", asks("hello"))).status).toBe(200);
    await without.stop();
  });
});

describe("a connection is closed", () => {
  test("with 1009 when a message is too large; the largest is served", async () => {
    using client = await connect();
    const around = JSON.stringify({ type: "response.create", ...asks("") }).length;
    expect(responseIn(await client.create(asks("x".repeat(bytes_max - around)))).status).toBe("completed");
    client.send({ type: "response.create", ...asks("x".repeat(bytes_max - around + 1)) });
    // If the runtime has not read the whole message, it ends the connection without a closing frame.
    expect([1006, 1009]).toContain(await client.closed());
  });

  test("with 1003 when a message is no text", async () => {
    using client = await connect();
    client.sendText(new Uint8Array(3));
    expect(await client.closed()).toBe(1003);
  });

  test("with 1008 when too many messages are unanswered", async () => {
    using client = await connect();
    for (let sent = 0; sent < 66; sent++) client.send({ type: "response.create", ...slow });
    expect(await client.closed()).toBe(1008);
  });

  test("with 401 and 1008 when its key is revoked, and what ran ends", async () => {
    const made = await newMember(service, "unlimited");
    using client = await connect(made.key);
    client.send({ type: "response.create", ...asks("[simulator: tokens=5000 tps=50]") });
    await until(() => client.heard.some(({ type }) => type === "response.output_text.delta"));
    await service.json("key", "revoke", made.id);
    expect(await client.closed()).toBe(1008);
    expect(client.heard.findLast(({ type }) => type === "error")).toMatchObject({
      ...{ status: 401, code: "revoked_api_key" },
    });
    await until(() => service.engine.counts.active === 0);
  });
});

describe("a node that drains", () => {
  test("closes idle connections at once, and others with their answer", async () => {
    const draining = await startService();
    using idle = await connect(draining.key, draining);
    using busy = await connect(draining.key, draining);
    const answer = busy.create(slower);
    await until(() => draining.engine.counts.active === 1);
    draining.signal("SIGTERM");
    expect(await idle.closed()).toBe(1012);
    expect(busy.state).toBe("open");
    busy.send({ type: "response.create", ...asks("late") });
    await until(() => busy.heard.some(({ type }) => type === "error"));
    expect(errorIn(busy.heard.filter(({ type }) => type === "error"))).toMatchObject({ status: 503, code: "draining" });
    await answer;
    expect(await busy.closed()).toBe(1012);
    expect(busy.heard.at(-1)?.type).toBe("response.completed");
    expect(await draining.stop()).toBe(0);
  });

  test("ends what is not done by its deadline with the protocol's failure", async () => {
    const draining = await startService({ limits: "{ drain_ms: 300 }" });
    using client = await connect(draining.key, draining);
    const answer = client.create(asks("[simulator: tokens=5000 tps=50]"));
    await until(() => draining.engine.counts.active === 1);
    draining.signal("SIGTERM");
    expect((await answer).at(-1)?.type).toBe("response.failed");
    expect(await client.closed()).toBe(1012);
    expect(await draining.stop()).toBe(0);
  });
});

const echo = (text: string) => `[simulator: echo] ${text}`;
const forgotten = (text: string, more: object = {}) => asks(text, { store: false, ...more });
const gone = { status: 400, code: "previous_response_not_found", param: "previous_response_id" };
const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }];
const told = () =>
  (service.engine.requests.at(-1)!.body as { messages: { role: string; content: unknown }[] }).messages;

const receiptOf = (events: readonly ServerEvent[]) =>
  endedReceipt(service, events.find(({ request_id }) => request_id)?.request_id);

describe("a response", () => {
  test("has the events of a stream, and one record", async () => {
    using client = await connect();
    const body = asks("[simulator: tokens=12]");
    const events = await client.create(body);
    const streamed = await eventsOf(await service.post("/v1/responses", { ...body, stream: true }));
    const shape = (all: readonly { type: string; sequence_number?: number }[]) =>
      all.map(({ type, sequence_number }) => `${sequence_number} ${type}`);
    expect(shape(events)).toEqual(shape(streamed));
    expect(responseIn(events)).toMatchObject({ status: "completed", usage: { output_tokens: 12 } });
    expect(await receiptOf(events)).toMatchObject({
      ...{ operation: "responses", stream: true, outcome: "completed" },
      usage: { output_tokens: 12, source: "reported" },
    });
    expect(client.state).toBe("open");
  });

  test("that is stored can be fetched, and continued on another connection", async () => {
    using client = await connect();
    const first = responseIn(await client.create(asks(echo("one"))));
    expect((await service.fetch(`/v1/responses/${first.id}`)).status).toBe(200);
    using other = await connect();
    await other.create(asks(echo("two"), { previous_response_id: first.id }));
    expect(told().map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  test("whose engine breaks off ends in the protocol's failure, and the next one follows", async () => {
    using client = await connect();
    const failed = await client.create(asks("[simulator: tokens=20 cut-after=5]"));
    expect(failed.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
    expect((await receiptOf(failed)).outcome).toBe("failed");
    expect(responseIn(await client.create(asks(echo("on")))).status).toBe("completed");
  });

  test("ends when its client leaves, and is charged as far as it came", async () => {
    const client = await connect();
    client.send({ type: "response.create", ...asks("[simulator: tokens=5000 tps=50]") });
    await until(() => client.heard.some(({ type }) => type === "response.output_text.delta"));
    client[Symbol.dispose]();
    expect((await receiptOf(client.heard)).outcome).toBe("cancelled");
  });
});

describe("a conversation of this connection", () => {
  test("goes on though nobody stored it, with tools between, and only here", async () => {
    using client = await connect();
    const first = responseIn(await client.create(forgotten(echo("one"))));
    const second = responseIn(
      await client.create(forgotten("[simulator: calls=1] two", { previous_response_id: first.id, tools })),
    );
    const { call_id } = second.output.find((item) => item.type === "function_call")!;
    const input = [{ type: "function_call_output", call_id, output: "4 degrees" }];
    const third = await client.create({ model, input, store: false, previous_response_id: second.id, tools });
    expect(textOf(responseIn(third))).toContain("4 degrees");
    expect(told().map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "tool"]);
    using other = await connect();
    expect(errorIn(await other.create(forgotten("x", { previous_response_id: second.id })))).toMatchObject(gone);
    const posted = await service.post("/v1/responses", asks("x", { previous_response_id: second.id }));
    expect(posted.status).toBe(400);
    await posted.arrayBuffer();
    // On the other connection, the conversation continues if the client sends it whole.
    const whole = [...first.output, { role: "user", content: echo("two") }];
    expect(responseIn(await other.create({ model, input: whole, store: false })).status).toBe("completed");
  });

  test("is forgotten when a response that continued it fails", async () => {
    using client = await connect();
    const first = responseIn(await client.create(forgotten(echo("one"))));
    const input = [{ type: "function_call_output", call_id: "call_nobody_made", output: "x" }];
    const failed = await client.create({ model, input, store: false, previous_response_id: first.id });
    expect(errorIn(failed)).toMatchObject({ status: 400, code: "invalid_value", param: "input[0].call_id" });
    expect(errorIn(await client.create(forgotten("x", { previous_response_id: first.id })))).toMatchObject(gone);
  });

  test("can be taken first, without an engine and without a charge", async () => {
    using client = await connect();
    const asked = service.engine.counts.requests;
    const taken = await client.create(forgotten(echo("one"), { generate: false }));
    expect(taken.map(({ type }) => type)).toEqual(["response.created", "response.in_progress", "response.completed"]);
    expect(responseIn(taken)).toMatchObject({ output: [], usage: { total_tokens: 0 } });
    expect(service.engine.counts.requests).toBe(asked);
    const none = await service.fetch(`/v1/service/requests/${taken[0]!.request_id}`);
    expect([none.status, await none.json()]).toMatchObject([404, {}]);
    await client.create(forgotten(echo("two"), { previous_response_id: responseIn(taken).id }));
    expect(told().map(({ content }) => JSON.stringify(content))).toEqual([
      JSON.stringify(echo("one")),
      JSON.stringify(echo("two")),
    ]);
  });

  test("that is taken first is kept on its connection alone, also where responses are stored", async () => {
    using client = await connect();
    const taken = responseIn(await client.create({ model, input: echo("one"), generate: false }));
    expect((await service.fetch(`/v1/responses/${taken.id}`)).status).toBe(404);
    await client.create({ model, input: echo("two"), previous_response_id: taken.id });
    expect(told().map(({ content }) => JSON.stringify(content))).toEqual([
      JSON.stringify(echo("one")),
      JSON.stringify(echo("two")),
    ]);
  });

  test("goes on from its summary alone", async () => {
    using client = await connect();
    const first = responseIn(await client.create(forgotten(echo("one"))));
    const trigger = { model, input: [{ type: "compaction_trigger" }], store: false, previous_response_id: first.id };
    const summary = responseIn(await client.create(trigger));
    expect(summary.output.map(({ type }) => type)).toEqual(["compaction"]);
    await client.create(forgotten(echo("two"), { previous_response_id: summary.id }));
    expect(JSON.stringify(told())).not.toContain(echo("one"));
  });

  test("goes on from what /v1/responses/compact made of it, without its id", async () => {
    using client = await connect();
    const input = [{ role: "user", content: echo("one") }];
    const compacted = await service.post("/v1/responses/compact", { model, input });
    const { output } = (await compacted.json()) as { output: object[] };
    const first = responseIn(await client.create({ model, input: [...output, ...input], store: false }));
    expect(first.status).toBe("completed");
    await client.create(forgotten(echo("two"), { previous_response_id: first.id }));
    const roles = told().map(({ role }) => role);
    expect([roles[0], roles.at(-2), roles.at(-1)]).toEqual(["user", "assistant", "user"]);
    expect(roles.length).toBeGreaterThan(3);
  });
});

describe("lanes", () => {
  test("run side by side, and the responses of one follow one another", async () => {
    using client = await connect();
    const create = (stream_id: string, text: string) =>
      client.send({ type: "response.create", stream_id, ...forgotten(text) });
    create("slow", "[simulator: ttft=600 tokens=3]");
    create("slow", "[simulator: tokens=1]");
    create("quick", "[simulator: tokens=2]");
    const [quick, slow] = [await client.answer("quick"), await client.answer("slow")];
    expect(client.heard.indexOf(quick.at(-1)!)).toBeLessThan(client.heard.indexOf(slow.at(-1)!));
    const last = await client.answer("slow");
    expect([slow, last].map((events) => responseIn(events).usage?.output_tokens)).toEqual([3, 1]);
    expect(client.heard.every(({ stream_id }) => stream_id !== undefined)).toBe(true);
  });

  test("may continue one another, and are at most sixteen", async () => {
    using client = await connect();
    const first = responseIn(await client.create(forgotten(echo("one"), { stream_id: "a" })));
    await client.create(forgotten(echo("two"), { stream_id: "b", previous_response_id: first.id }));
    expect(told()).toHaveLength(3);
    for (let lane = 0; lane < 17; lane++)
      client.send({ type: "response.create", stream_id: `${lane}`, ...forgotten("[simulator: ttft=1000 tokens=1]") });
    await until(() => client.heard.some(({ type }) => type === "error"));
    const refused = client.heard.filter(({ type }) => type === "error");
    expect(refused).toMatchObject([{ status: 429, code: "concurrency_limit_exceeded", param: "stream_id" }]);
  });
});

describe("an error", () => {
  test.each<[string | object, number, string, string | null]>([
    ["{", 400, "invalid_json", null],
    ["[]", 400, "invalid_value", null],
    ['{"model":"x"}', 400, "missing_field", "type"],
    ['{"type":"response.inject"}', 400, "invalid_value", "type"],
    [{ type: "response.create", ...asks("x"), stream_id: 7 }, 400, "invalid_value", "stream_id"],
    [{ type: "response.create", ...asks("x"), generate: "no" }, 400, "invalid_value", "generate"],
    [{ type: "response.create", ...asks("x"), background: true }, 400, "unsupported_feature", "background"],
    [{ type: "response.create", model: "nobody/none", input: "x" }, 404, "model_not_found", "model"],
    [{ type: "response.create", ...asks("x"), previous_response_id: "resp_x" }, 400, gone.code, gone.param],
  ])("of %j says what is wrong, and the connection goes on", async (sent, status, code, param) => {
    using client = await connect();
    client.sendText(typeof sent === "string" ? sent : JSON.stringify(sent));
    const error = errorIn(await client.answer());
    expect(error).toMatchObject({ status, code, param, error: { code, param, message: error.message } });
    expect(error.error.request_id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(responseIn(await client.create(asks(echo("on")))).status).toBe("completed");
  });

  test("of an engine has its true status and when to ask again", async () => {
    using client = await connect();
    const error = errorIn(await client.create(asks("[simulator: status=429 retry-after=7]")));
    expect(error).toMatchObject({ status: 429, code: "capacity_exceeded", headers: { "retry-after": "7" } });
  });

  test("has a receipt, which says that the answer was to be a stream", async () => {
    // A separate organization, because each organization has only ten receipts of refusals a second.
    const { key } = await newMember(service, "unlimited");
    using client = await talk(service.url, { authorization: `Bearer ${key}` });
    const { error } = errorIn(await client.create(asks("x", { temperature: 9 })));
    let receipt: object = {};
    const isThere = async () => {
      const response = await service.fetch(`/v1/service/requests/${error.request_id}`, { key });
      receipt = (await response.json()) as object;
      return response.status === 200;
    };
    await until(isThere, 5_000, "the receipt");
    expect(receipt).toMatchObject({ outcome: "refused", error_code: error.code, stream: true });
  });

  test("answers steering in its own words, and gives the input back", async () => {
    using client = await connect();
    client.send({ type: "response.steer", previous_response_id: "resp_1", input: "left" });
    expect(await client.answer()).toMatchObject([
      { type: "response.steer.failed", error: { code: "steering_not_supported" }, steer: { input: "left" } },
    ]);
  });
});
