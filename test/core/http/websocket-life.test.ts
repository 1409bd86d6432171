/** The life of a WebSocket: who may open one, how many there may be, how large a message is, and how it ends. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { rawClient } from "../../harness/raw-client.ts";
import { until } from "../../harness/until.ts";
import { errorIn, responseIn, type Talk, talk } from "../../harness/websocket.ts";

setDefaultTimeout(60_000);

const upgrading = {
  ...{ connection: "Upgrade", upgrade: "websocket" },
  ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
};
const bytes_max = 64 * 1024;
const asks = (text: string, more: object = {}) => ({ model, input: text, store: false, ...more });
const slow = asks("[simulator: tokens=20 tps=40]");
const slower = asks("[simulator: tokens=80 tps=20]");

const service = await startService({ limits: `{ websocket_frame_bytes_max: ${bytes_max} }` });
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
