/** Behaviour that all operations share: ids, credentials, scopes, methods, bodies. Bad input only ever gets a 4xx. */
import { afterAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { operations } from "../../../src/node/operations.ts";
import { errorOf, model, plainModel, says, startService } from "../../harness/engine.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { rawClient, untilClosed } from "../../harness/raw-client.ts";

const service = await startService({
  limits: "{ body_read_ms: 600 }",
  plans: { slow: "{ requests_per_minute: 60 }" },
});
afterAll(() => service.stop(), 60_000);

const path = "/v1/chat/completions";
const valid = () => ({ model, messages: says("") });

/** Sends one request as bytes, and returns the bytes that come back. */
async function raw(text: string): Promise<string> {
  const client = await rawClient(service.url);
  await client.write(text);
  return client.read().finally(client.leave);
}

test("every answer names its request by an id of the service, whatever id its client sent", async () => {
  const headers = { "x-request-id": "mine", "x-service-request-id": "mine" };
  for (const at of ["/v1/models", "/v1/models/", "/v1/nothing", path, "/v1/responses/resp_x", "/livez", "/docs"]) {
    for (const method of ["GET", "HEAD", "OPTIONS", "DELETE"]) {
      for (const key of [service.key, null]) {
        const response = await service.fetch(at, { method, key, headers });
        expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
        expect([at, method, response.status < 500]).toEqual([at, method, true]);
      }
    }
  }
});

test("a short host name is a host name", async () => {
  const answer = await raw(`GET /v1/models HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer ${service.key}\r\n\r\n`);
  expect(answer).toStartWith("HTTP/1.1 200");
});

test("there is no CORS", async () => {
  const response = await service.fetch("/v1/models", { headers: { origin: "https://example.com" } });
  expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
});

describe("models", () => {
  test("are listed with exactly four fields each, and retrieved by id, slash encoded or raw", async () => {
    const { object, data } = (await (await service.fetch("/v1/models")).json()) as { object: string; data: object[] };
    expect(object).toBe("list");
    for (const entry of data) expect(Object.keys(entry).sort()).toEqual(["created", "id", "object", "owned_by"]);
    const whole = { id: model, object: "model", context_window: 131072, max_output_tokens: 16384 };
    for (const at of [`/v1/models/${model}`, `/v1/models/${encodeURIComponent(model)}`])
      expect(await (await service.fetch(at)).json()).toMatchObject(whole);
  });

  test("come in pages to Messages clients that ask for pages, and all at once to everybody else", async () => {
    const headers = { "anthropic-version": "2023-06-01" };
    const listed = async (query: string, init: RequestInit = { headers }) => {
      const answer = await service.fetch(`/v1/models?${query}`, init);
      return (await answer.json()) as { data: { id: string }[]; has_more?: boolean; first_id: string; last_id: string };
    };
    const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);
    const all = idsOf(await listed(""));
    expect(all.length).toBeGreaterThan(2);
    for (let size = 1; size <= all.length + 1; size++) {
      const forwards = await listed(`limit=${size}`);
      expect([idsOf(forwards), forwards.has_more]).toEqual([all.slice(0, size), size < all.length]);
      const rest = await listed(`limit=${size}&after_id=${encodeURIComponent(all[0]!)}`);
      expect([idsOf(rest), rest.has_more]).toEqual([all.slice(1, 1 + size), 1 + size < all.length]);
      const before = await listed(`limit=${size}&before_id=${all.at(-1)}`);
      expect([idsOf(before), before.has_more]).toEqual([all.slice(0, -1).slice(-size), size < all.length - 1]);
      expect([before.first_id, before.last_id]).toEqual([before.data[0]!.id, before.data.at(-1)!.id]);
    }
    expect(idsOf(await listed(`after_id=${all[0]}`))).toEqual(all.slice(1));
    const none = { data: [], has_more: false, first_id: null, last_id: null };
    expect(await listed(`after_id=${all.at(-1)}`)).toEqual(none as never);
    for (const [query, problem] of [
      ...["limit=0", "limit=1001", "limit=x"].map((query) => [query, "limit: must be a whole number from 1 to 1000."]),
      ["after_id=nobody", "after_id: must be the id of a model in the list."],
      ["before_id=nobody", "before_id: must be the id of a model in the list."],
      [`after_id=${all[0]}&before_id=${all[1]}`, "'before_id' cannot be combined. Send one of them."],
    ]) {
      const answer = await service.fetch(`/v1/models?${query}`, { headers });
      const { message } = await errorOf(answer);
      expect([query, answer.status, message]).toEqual([query, 400, expect.stringContaining(problem!)]);
      expect(idsOf(await listed(query!, {}))).toEqual(all);
    }
  });

  test("unknown ones are 404, in a stream request too, before any event", async () => {
    for (const at of ["/v1/models/nobody/nothing", "/v1/models/%ff", "/v1/models/x"]) {
      const response = await service.fetch(at);
      expect([response.status, (await errorOf(response)).code]).toEqual([404, "model_not_found"]);
    }
    const response = await service.post(path, { model: "nobody/nothing", messages: says(""), stream: true });
    expect(response.status).toBe(404);
    expect(await errorOf(response)).toMatchObject({ code: "model_not_found", param: "model" });
  });
});

describe("bodies", () => {
  const send = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    service.fetch(path, {
      method: "POST",
      body: body as unknown as string,
      headers: { "content-type": "application/json", ...headers },
    });

  test("that are not JSON, not UTF-8, empty or too deep are invalid_json", async () => {
    const deep = (levels: number) =>
      `{"model":"${model}","messages":[],"x":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    for (const body of ["", "{", "nonsense", new Uint8Array([0x22, 0xff, 0x22]), deep(101), deep(1_000_000)]) {
      const response = await send(body);
      expect([response.status, (await errorOf(response)).code]).toEqual([400, "invalid_json"]);
    }
  });

  test("with a byte order mark are read", async () => {
    expect((await send(`\uFEFF${JSON.stringify(valid())}`)).status).toBe(200);
  });

  test("of another content type are invalid_content_type", async () => {
    for (const type of ["text/plain", "", "multipart/form-data", "application/jsonp"]) {
      const response = await send(JSON.stringify(valid()), { "content-type": type });
      expect([type, response.status, (await errorOf(response)).code]).toEqual([type, 400, "invalid_content_type"]);
    }
    const known = await send(JSON.stringify(valid()), { "content-type": "Application/JSON; charset=UTF-8" });
    expect(known.status).toBe(200);
  });

  test("may be compressed in four ways (body-shape.test.ts), and in no other", async () => {
    const plain = Buffer.from(JSON.stringify(valid()));
    for (const [encoding, body, code] of [
      ["lzma", plain, "invalid_value"],
      ["gzip", plain, "invalid_json"],
      ["gzip", gzipSync(plain).subarray(0, 20), "invalid_json"],
      ["gzip, gzip", gzipSync(gzipSync(plain)), "invalid_value"],
    ] as const) {
      const refused = await send(body, { "content-encoding": encoding });
      expect([encoding, refused.status, (await errorOf(refused)).code]).toEqual([encoding, 400, code]);
    }
  });

  test("of 32 MiB and a byte, plain, chunked or as a bomb, are 413, and the client can read it", async () => {
    const limit = 32 * 1024 * 1024;
    const bomb = gzipSync(Buffer.alloc(limit * 4, " "));
    const chunked = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new Uint8Array(1024 * 1024).fill(32));
        await Bun.sleep(1);
      },
    });
    for (const response of [
      await send(" ".repeat(limit + 1)),
      await send(bomb, { "content-encoding": "gzip" }),
      await send(chunked as unknown as Uint8Array),
    ]) {
      expect([response.status, (await errorOf(response)).code]).toEqual([413, "request_too_large"]);
    }
    const whole = JSON.stringify({ model, messages: Array(2).fill({ role: "user", content: "" }) });
    expect((await send(whole + " ".repeat(limit - whole.length))).status).not.toBe(413);
  }, 60_000);
});

/** A request that is wrong in every way gets the first error in the decided order; when that is fixed, the next one. */
test("a chat completion's checks come in their order", async () => {
  const { organization, key: whole } = await newMember(service, "unlimited");
  await service.json("org", "plan", organization, "--none");
  const { key: reader } = await newKey(service, organization, "--scopes", "models:read");
  const { key: narrow } = await newKey(service, organization, "--models", "acme/writer-1");
  const json = { "content-type": "application/json" };
  const wrong = { messages: [{ role: "user", content: "x" }], model: "acme/none", nonsense: 1 };
  const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
  const { nonsense: _, ...unknownModel } = wrong;
  const incapable = { ...unknownModel, model: plainModel, tools: [tool] };
  const { tools: __, ...unplanned } = incapable;
  const asked: [string, string, string | null, Record<string, string>, string][] = [
    ["method_not_allowed", "PUT", null, {}, "{"],
    ["missing_api_key", "POST", null, {}, "{"],
    ["missing_scope", "POST", reader, {}, "{"],
    ["invalid_content_type", "POST", narrow, { "content-type": "text/plain" }, "{"],
    ["invalid_json", "POST", narrow, json, "{"],
    ["unknown_field", "POST", narrow, json, JSON.stringify(wrong)],
    ["model_not_found", "POST", narrow, json, JSON.stringify(unknownModel)],
    ["model_not_allowed", "POST", narrow, json, JSON.stringify(incapable)],
    ["unsupported_feature", "POST", whole, json, JSON.stringify(incapable)],
    ["no_active_plan", "POST", whole, json, JSON.stringify(unplanned)],
  ];
  const codes: string[] = [];
  for (const [, method, key, headers, body] of asked) {
    const response = await service.fetch("/v1/chat/completions", { method, key, headers, body });
    codes.push(((await response.json()) as { error: { code: string } }).error.code);
  }
  expect(codes).toEqual(asked.map(([code]) => code));
}, 30_000);

/** Refused requests count too: a key that sends only invalid bodies is told to wait before its body is read. */
const attempts_max = 600;

test("after ten minutes' worth of bad bodies each protocol says when to come back, and counts go on", async () => {
  const { key } = await newMember(service, "slow");
  const send = (path: string, body = "{") =>
    fetch(service.url + path, {
      ...{ method: "POST", body },
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
  /**
   * Sends until a request gets a 429. On a slow machine that takes more requests, because the bucket refills meanwhile.
   */
  const untilRefused = async (path: string) => {
    for (let parsed = 0; parsed < 20 * attempts_max; ) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => send(path)));
      parsed += answers.filter(({ status }) => status === 400).length;
      const refused = answers.find(({ status }) => status === 429);
      if (refused) return { refused, parsed };
    }
    throw new Error("no request is refused");
  };
  const { refused, parsed } = await untilRefused("/v1/chat/completions");
  expect(parsed).toBeGreaterThanOrEqual(attempts_max);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error", code: "rate_limit_exceeded" } });

  for (const path of ["/v1/messages", "/v1/responses"]) {
    const { refused } = await untilRefused(path);
    expect(refused.headers.get("retry-after")).toBe("1");
    const { error } = (await refused.json()) as { error: Record<string, unknown> };
    if (path === "/v1/messages")
      expect(error).toMatchObject({ type: "rate_limit_error", details: { error_code: "rate_limit_exceeded" } });
    else expect(error).toMatchObject({ code: "rate_limit_exceeded", message: expect.stringContaining("600 requests") });
  }
  const counted = await send("/v1/messages/count_tokens", JSON.stringify({ model, messages: says("", "hello") }));
  expect(counted.status).toBe(200);
}, 120_000);

const stored = await service.post("/v1/responses", { model, input: "x" });
const ids = {
  response: ((await stored.json()) as { id: string }).id,
  request: stored.headers.get("x-service-request-id") ?? "",
};

async function headAndBody(method: string, path: string, key: string | null) {
  const client = await rawClient(service.url);
  const credential = key === null ? "" : `authorization: Bearer ${key}\r\n`;
  await client.write(`${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${credential}\r\n`);
  const text = await client.read(untilClosed);
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [status, ...lines] = head.split("\r\n");
  const headers = new Map(lines.map((line) => line.toLowerCase().split(": ") as [string, string]));
  const body = rest.join("\r\n\r\n");
  return { status, length: headers.get("content-length"), type: headers.get("content-type"), body };
}

/** The path with the id of an existing object in it. */
function filled(path: string): string {
  if (path.includes("/responses/")) return path.replace("{id}", ids.response);
  return path.replace("{id}", path.includes("/requests/") ? ids.request : model);
}

/** HEAD answers as GET does, without the body: with GET's length, or with none (RFC 9110, 8.6). */
describe("HEAD", () => {
  const described = operations.filter(({ method }) => method === "get").map(({ path }) => path);
  const others = ["/metrics", "/docs/scalar.js", "/v1/nothing", "/v1/chat/completions", "/v1/responses"];
  for (const at of [...described, ...others]) {
    test(`${at}`, async () => {
      for (const key of [service.key, null]) {
        const get = await headAndBody("GET", filled(at), key);
        const head = await headAndBody("HEAD", filled(at), key);
        expect(get.body).not.toBe("");
        expect(head).toMatchObject({ status: get.status, type: get.type, body: "" });
        // The length of these two paths' answers differs each time.
        if (at === "/metrics" || at === "/readyz") expect(head.length).not.toBe("0");
        else expect([get.length, undefined]).toContain(head.length);
      }
    });
  }
});
