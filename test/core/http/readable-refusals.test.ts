/**
 * A client that writes its whole body before it reads still gets the refusal; and the bytes that the service reads for
 * such clients are limited.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { busyness } from "../../harness/busyness.ts";
import { model, says, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { type RawClient, rawClient } from "../../harness/raw-client.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const mib = 1024 * 1024;
const chat = "/v1/chat/completions";

const service = await startService({
  limits: `{ body_bytes_max: ${24 * mib}, drain_delay_ms: 0, drain_ms: 200 }`,
  plans: { none: "{ requests_per_minute: 1 }" },
});
const { key: readerKey } = await newMember(service, "unlimited", "--scopes", "models:read");
const { key: busyKey } = await newMember(service, "none");
expect((await service.post(chat, { model, messages: says("") }, { key: busyKey })).status).toBe(200);
afterAll(() => service.stop());

interface Sent {
  method?: string;
  path?: string;
  key?: string | null;
  headers?: string[];
}

const head = ({ method = "POST", path = chat, key = null, headers = [] }: Sent) =>
  [
    `${method} ${path} HTTP/1.1`,
    "host: localhost",
    "content-type: application/json",
    ...(key === null ? [] : [`authorization: Bearer ${key}`]),
    ...headers,
    "\r\n",
  ].join("\r\n");
const length = (bytes: number) => `content-length: ${bytes}`;

const piece = Buffer.alloc(256 * 1024, " ");
/** The spaces of `piece` as a chunk of a body without a length. */
const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);
async function writeSpaces(client: RawClient, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= piece.length)
    await client.write(piece.subarray(0, Math.min(left, piece.length)));
}

/** Writes the whole body, and only then reads the answer, as Python's urllib does. */
async function writtenThenRead(sent: Sent, bytes: number, localAddress?: string, body?: Buffer): Promise<string> {
  const client = await rawClient(service.url, localAddress === undefined ? undefined : { localAddress });
  try {
    await client.write(head({ ...sent, headers: [length(bytes), "connection: close", ...(sent.headers ?? [])] }));
    if (body) await client.write(body);
    else await writeSpaces(client, bytes);
    return await client.read();
  } finally {
    client.leave();
  }
}

/** A client that sends the beginning of a body, and then nothing more. */
async function slow(localAddress?: string): Promise<RawClient> {
  const client = await rawClient(service.url, localAddress === undefined ? undefined : { localAddress });
  await client.write(`${head({ path: "/v1/nothing", headers: [length(mib)] })} `);
  return client;
}

/** Reads the refusal of a request whose body the service did not wait for: the connection is closed. */
async function readClosing(client: RawClient, status: number): Promise<void> {
  const answer = await client.read();
  expect(answer).toStartWith(`HTTP/1.1 ${status}`);
  expect(answer.toLowerCase()).toContain("connection: close");
  await client.closed();
}

const openRequests = async () =>
  Number(/^\w*http_open_requests (\d+)$/m.exec(await (await service.fetch("/metrics", { key: null })).text())?.[1]) - 1;
const open = (count: number) => until(async () => (await openRequests()) === count, 10_000, `${count} open requests`);

describe("a refusal is read by a client that writes 20 MiB first", () => {
  test.each<[string, number, string, Sent, number?]>([
    ["no key", 401, "missing_api_key", {}],
    ["no key, on Messages", 401, "missing_api_key", { path: "/v1/messages" }],
    ["no key, on Responses", 401, "missing_api_key", { path: "/v1/responses" }],
    ["no key, on count_tokens", 401, "missing_api_key", { path: "/v1/messages/count_tokens" }],
    ["a key without the scope", 403, "missing_scope", { key: readerKey }],
    ["an unknown path", 404, "route_not_found", { path: "/v1/nothing" }],
    ["another method", 405, "method_not_allowed", { method: "PUT" }],
    ["a method of a path that takes no body", 405, "method_not_allowed", { method: "DELETE", path: "/livez" }],
    ["what is no JSON", 400, "invalid_json", { key: service.key }],
    ["too large a body", 413, "request_too_large", { key: service.key }, 40 * mib],
  ])("%s: %d %s", async (_, status, code, sent, bytes = 20 * mib) => {
    const answer = await writtenThenRead(sent, bytes);
    expect(answer).toStartWith(`HTTP/1.1 ${status}`);
    expect(answer).toContain(`"${code}"`);
  });

  test("one request too many, its body read already: 429 rate_limit_exceeded", async () => {
    const url = `data:image/png;base64,${"A".repeat(12 * mib)}`;
    const messages = [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
    const body = Buffer.from(JSON.stringify({ model, messages }));
    const answer = await writtenThenRead({ key: busyKey }, body.length, undefined, body);
    expect(answer).toStartWith("HTTP/1.1 429");
    expect(answer).toContain('"rate_limit_exceeded"');
  });

  test("too large a body, in chunks: 413 in the middle of it", async () => {
    const client = await rawClient(service.url);
    await client.write(head({ key: service.key, headers: ["transfer-encoding: chunked", "connection: close"] }));
    for (let i = 0; i < 160; i++) await client.write(chunk);
    await client.write("0\r\n\r\n");
    expect(await client.read()).toContain('"request_too_large"');
    client.leave();
  });

  test("so is a success that needs no body: DELETE of a stored response", async () => {
    const { id } = (await (await service.post("/v1/responses", { model, input: "x" })).json()) as { id: string };
    const sent = { method: "DELETE", path: `/v1/responses/${id}`, key: service.key };
    expect(await writtenThenRead(sent, 20 * mib)).toStartWith("HTTP/1.1 200");
  });
});

describe("the connection", () => {
  test("serves the next request after a refusal, and after many", async () => {
    const client = await rawClient(service.url);
    for (const [sent, status] of [
      [{}, 401],
      [{ key: service.key, headers: [] }, 413],
      [{ path: "/v1/nothing" }, 404],
    ] as const) {
      const bytes = status === 413 ? 30 * mib : 5 * mib;
      await client.write(head({ ...sent, headers: [length(bytes)] }));
      await writeSpaces(client, bytes);
      const answer = await client.read();
      expect(answer).toStartWith(`HTTP/1.1 ${status}`);
      expect(answer.toLowerCase()).not.toContain("connection: close");
    }
    await client.write(head({ method: "GET", path: "/livez" }));
    expect(await client.read()).toStartWith("HTTP/1.1 200");
    client.leave();
  });

  test("carries requests one behind the other, each with its body", async () => {
    const client = await rawClient(service.url);
    await client.write(`${head({ headers: [length(5)] })}hello`.repeat(3));
    const answers = await client.read(/(HTTP\/1\.1 401[\s\S]*){3}\}$/);
    expect(answers.match(/missing_api_key/g)).toHaveLength(3);
    client.leave();
  });

  test("tells a client that waits for '100 Continue' to go on, and then its refusal", async () => {
    const client = await rawClient(service.url);
    await client.write(head({ headers: [length(mib), "expect: 100-continue"] }));
    expect(await client.read(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)).toContain("100");
    await writeSpaces(client, mib);
    expect(await client.read()).toStartWith("HTTP/1.1 401");
    client.leave();
  });
});

describe("bounds: beyond them the connection is closed", () => {
  test("a body announced as more than 64 MiB is not waited for", async () => {
    const client = await rawClient(service.url);
    await client.write(head({ headers: [length(64 * mib + 1)] }));
    await readClosing(client, 401);
  });

  test("a body without an end is read for 64 MiB", async () => {
    const client = await rawClient(service.url);
    await client.write(head({ headers: ["transfer-encoding: chunked"] }));
    let bytes = 0;
    const endless = async () => {
      for (;;) {
        await client.write(chunk);
        bytes += piece.length;
      }
    };
    await expect(endless()).rejects.toThrow();
    expect(bytes).toBeGreaterThanOrEqual(63 * mib);
    // The unread bytes are in the buffers of both sockets; the operating system chooses their size.
    expect(bytes).toBeLessThan(128 * mib);
  });

  test("a body that does not come is waited for five seconds", async () => {
    const began = performance.now();
    const client = await slow();
    await readClosing(client, 404);
    const took_ms = performance.now() - began;
    expect(took_ms).toBeGreaterThan(4_900);
    expect(took_ms).toBeLessThan(8_000 * busyness());
  });

  test("four bodies of one address are read at once, the fifth is not waited for; a client that leaves makes room", async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => slow()));
    await open(4);
    await readClosing(await slow(), 404);
    // A body from another address is read, and a request with a small body keeps its connection.
    const other = await slow("127.0.0.2");
    await open(5);
    expect((await service.fetch("/v1/nothing", { method: "POST", body: "x" })).headers.get("connection")).not.toBe(
      "close",
    );
    clients.pop()?.leave();
    other.leave();
    await open(3);
    expect(await writtenThenRead({ path: "/v1/nothing" }, 20 * mib)).toContain("route_not_found");
    for (const client of clients) {
      await writeSpaces(client, mib - 1);
      const answer = await client.read();
      expect(answer).toContain("route_not_found");
      expect(answer.toLowerCase()).not.toContain("connection: close");
      client.leave();
    }
    await open(0);
  });

  test("64 bodies are read at once, the next is not waited for, of whatever address", async () => {
    const addresses = Array.from({ length: 16 }, (_, index) => `127.0.1.${index + 1}`);
    const began = performance.now();
    const clients = await Promise.all(addresses.flatMap((address) => Array.from({ length: 4 }, () => slow(address))));
    await open(64);
    await readClosing(await slow("127.0.2.1"), 404);
    expect(performance.now() - began).toBeLessThan(5_000 * busyness());
    for (const client of clients) client.leave();
    await open(0);
    expect(await writtenThenRead({ path: "/v1/nothing" }, 20 * mib, "127.0.2.1")).toContain("route_not_found");
  });
});

test("bytes that are discarded are kept nowhere", async () => {
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1]) / 1024;
  const four = async () => {
    // A body of the last round that is still counted would exceed the limit.
    await open(0);
    await Promise.all(Array.from({ length: 4 }, () => writtenThenRead({ path: "/v1/nothing" }, 60 * mib)));
  };
  await four();
  const before = rss();
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, rss());
  }, 5);
  try {
    for (let i = 0; i < 2; i++) await four();
  } finally {
    clearInterval(watch);
  }
  // The process grew by at most 100 MiB, though 480 MiB were sent.
  expect(most - before).toBeLessThan(100);
});

test("a server that is told to stop does not wait for a body", async () => {
  const client = await slow();
  await open(1);
  const began = performance.now();
  service.signal("SIGTERM");
  expect(await service.exited).toBe(0);
  expect(performance.now() - began).toBeLessThan(4_000 * busyness());
  client.leave();
});
