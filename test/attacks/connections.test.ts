/** A connection on which no further request arrives is closed, and some file descriptors stay reserved for probes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, says, startService } from "../harness/engine.ts";
import { type RawClient, rawClient } from "../harness/raw-client.ts";
import { until } from "../harness/until.ts";
import { allIdle, idleConnections } from "./connections.ts";
import { chatOf, headOf } from "./talk.ts";

setDefaultTimeout(90_000);

describe("a connection that asks nothing more is closed", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ limits: "{ idle_ms: 1000, heartbeat_ms: 500 }" });
  });
  afterAll(async () => {
    await service.stop();
  });

  const connections = 100;
  const wanting = () => ({ url: service.url, connections, patience_ms: 40_000 });

  // Both tests wait for the idle timeout of connections, so they run concurrently.
  test.concurrent("after a refusal, an answer or a stream, with a head that never ends, or with none", async () => {
    const body = JSON.stringify({ model, stream: true, messages: says("") });
    const all = { opened: connections, closed: connections, livez_failed: 0 };
    for (const measured of await allIdle(wanting(), service.key, body)) expect(measured).toMatchObject(all);
  });

  test.concurrent("but not one whose answer is long in coming, or whose body is", async () => {
    const client = await rawClient(service.url);
    const body = JSON.stringify({ model, messages: says("ttft=9000") });
    const rest = body.slice(10);
    await client.write(chatOf(service.key, body).slice(0, -rest.length));
    // Waits until the node has closed an idle connection.
    await idleConnections({ ...wanting(), connections: 1 });
    await client.write(rest);
    expect(await client.read(undefined, 60_000)).toStartWith("HTTP/1.1 200");
    client.leave();
  });
});

test("where descriptors run out, requests are refused and their connections closed, and probes are served", async () => {
  const service = await startService({ limits: "{ idle_ms: 10000 }", sluice: { descriptors: 256 } });
  try {
    const clients: RawClient[] = [];
    let refusal = "";
    await until(
      async () => {
        const client = await rawClient(service.url);
        clients.push(client);
        await client.write(headOf("GET /v1/models", service.key));
        refusal = await client.read();
        return refusal.startsWith("HTTP/1.1 503");
      },
      60_000,
      "a refusal",
    );
    expect(refusal).toContain('"overloaded"');
    expect(refusal.toLowerCase()).toContain("connection: close");
    expect(refusal.toLowerCase()).toMatch(/retry-after: \d/);
    for (const path of ["/livez", "/readyz"])
      expect((await service.fetch(path, { key: null, headers: { connection: "close" } })).status).toBe(200);
    for (const client of clients) client.leave();
    await until(async () => (await service.fetch("/v1/models")).status === 200, 20_000, "room again");
    const metrics = await (await service.fetch("/metrics", { key: null })).text();
    expect(metrics).toMatch(/^http_shed_total\{full="descriptors"\} [1-9]/m);
  } finally {
    await service.stop();
  }
});
