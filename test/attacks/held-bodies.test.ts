/**
 * Request bodies in flight have a limit on their total size: per key, for the node, and by the memory of the process.
 */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, says, startService } from "../harness/engine.ts";
import { until } from "../harness/until.ts";
import { heldBodies } from "./held-bodies.ts";
import { metricIn, metricsOf } from "./talk.ts";

setDefaultTimeout(90_000);

const mib = 1024 * 1024;
/** The bytes that each request counts in addition to its body. */
const stream_bytes = 64 * 1024;
const chat = "/v1/chat/completions";
let service: Service;
afterEach(async () => {
  await service.stop();
});

const metrics = () => metricsOf({ url: service.url, key: "" });
const inFlight = async () => metricIn(await metrics(), "http_memory_in_flight_bytes");
const shedOf = async (full: "key" | "process") => metricIn(await metrics(), "http_shed_total", `full="${full}"`);
const keyOf = async (slug: string, plan: string) => {
  await service.json("org", "create", slug, "--plan", plan);
  return (await service.json<{ key: string }>("key", "create", "--org", slug, "--name", "test")).key;
};

test("forty connections of one starter key hold its share and no more, announced or in chunks", async () => {
  service = await startService({ limits: `{ key_in_flight_bytes_max: ${64 * mib}, body_read_ms: 60000 }` });
  const key = await keyOf("starter", "starter");
  const attack = { url: service.url, pid: service.pid, key, connections: 40, sent_bytes: 12 * mib };
  const announced = await heldBodies({ ...attack, announced_bytes: 31 * mib });
  // Two bodies of 31 MiB with the extra bytes of each request fit; a third one does not. From four of the refused
  // clients, the service reads the whole body, and sends the response; it closes the connections of the others
  // immediately.
  expect(await shedOf("key")).toBe(38);
  expect(announced.refused).toEqual({ concurrency_limit_exceeded: expect.any(Number) });
  expect(announced.haveRetryAfter).toBe(true);
  expect(announced.resident_bytes_more).toBeLessThan(200 * mib);
  await until(async () => (await inFlight()) === 0, 10_000, "what they held to be free");

  const inChunks = await heldBodies({ ...attack, announced_bytes: 0, chunked: true });
  expect(await shedOf("key")).toBeGreaterThanOrEqual(38 + 34);
  expect(inChunks.resident_bytes_more).toBeLessThan(300 * mib);
  await until(async () => (await inFlight()) === 0, 10_000, "what they held to be free");
  expect((await service.post(chat, { model, messages: says("") }, { key })).status).toBe(200);
});

test("keys together hold the node's budget and no more; others are told to come back, and probes are served", async () => {
  service = await startService({
    limits: `{ in_flight_bytes_max: ${40 * mib}, key_in_flight_bytes_max: ${32 * mib}, body_read_ms: 60000 }`,
  });
  const [one, two] = [await keyOf("one", "unlimited"), await keyOf("two", "unlimited")];
  const attack = { url: service.url, pid: service.pid, connections: 1, announced_bytes: 31 * mib, sent_bytes: mib };
  const first = heldBodies({ ...attack, key: one });
  await until(async () => (await inFlight()) > 31 * mib, 10_000, "the first body to be held");
  const second = await heldBodies({ ...attack, key: two });
  expect(second.refused).toEqual({ overloaded: 1 });
  expect(second.haveRetryAfter).toBe(true);
  expect((await first).refused).toEqual({});
  await until(async () => (await inFlight()) === 0, 10_000, "what they held to be free");
});

test("a stream gives its body back when the answer has begun, and itself at its end", async () => {
  service = await startService();
  const body = { model, stream: true, messages: says("tps=1", "x".repeat(100_000)) };
  const leaving = new AbortController();
  const headers = { "content-type": "application/json", authorization: `Bearer ${service.key}` };
  const request = { method: "POST", headers, body: JSON.stringify(body), signal: leaving.signal };
  const response = await fetch(service.url + chat, request);
  expect(response.status).toBe(200);
  await until(async () => (await inFlight()) === stream_bytes, 10_000, "its body to be given back");
  leaving.abort();
  await until(async () => (await inFlight()) === 0, 10_000, "what it held to be free");
});

test("above the mark of memory new inference is shed, while a running stream goes on and probes are served", async () => {
  // The memory limit is so low that the process exceeds it from the start. A request is still served when it is the
  // only one.
  service = await startService({ limits: "{ memory_bytes: 1048576 }" });
  const running = await service.post(chat, { model, stream: true, messages: says("tps=20", "word ".repeat(160)) });
  expect(running.status).toBe(200);
  const shed = await service.post(chat, { model, messages: says("") });
  expect([shed.status, ((await shed.json()) as { error: { code: string } }).error.code]).toEqual([503, "overloaded"]);
  expect(Number(shed.headers.get("retry-after"))).toBeGreaterThan(0);
  for (const path of ["/livez", "/readyz", "/v1/models"]) expect((await service.fetch(path)).status).toBe(200);
  expect(await running.text()).toContain("[DONE]");
  expect((await service.post(chat, { model, messages: says("") })).status).toBe(200);
  expect(await shedOf("process")).toBe(1);
});
