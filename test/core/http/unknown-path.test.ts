/** A path that does not exist gets an error that says so, what was requested, and what was probably meant. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { operations } from "../../../src/node/operations.ts";
import { errorOf, model, startService } from "../../harness/engine.ts";
import { rawClient } from "../../harness/raw-client.ts";

setDefaultTimeout(60_000);

const service = await startService();
afterAll(() => service.stop());

const response = `resp_${"0".repeat(32)}`;
const request = `req_${"0".repeat(32)}`;
const filled = (path: string) =>
  path.replace("{id}", path.includes("/responses/") ? response : path.includes("/requests/") ? request : model);
const paths = [...new Set(operations.map(({ path }) => path))].filter((path) => path !== "/").map(filled);

async function refusalOf(path: string, init: RequestInit & { key?: string | null } = {}) {
  const answer = await service.fetch(path, { method: "POST", body: "{}", ...init });
  const body = (await answer.json()) as { type?: string; error: { message: string; code?: string; details?: object } };
  return { status: answer.status, isMessages: body.type === "error", ...body.error };
}

describe("a base URL", () => {
  const versioned = paths.filter((path) => path.startsWith("/v1/"));
  test("without /v1: the refusal names the path, and the one that was probably meant", async () => {
    expect(versioned.length).toBeGreaterThan(8);
    for (const path of versioned) {
      const asked = path.slice("/v1".length);
      const { status, message } = await refusalOf(asked, { key: null });
      expect({ path, status, message }).toEqual({
        path,
        status: 404,
        message: `There is nothing at '${asked}'. You probably mean '${path}'. End the base URL of your client with '/v1'.`,
      });
    }
  });

  test("with /v1 twice, or with another path before it", async () => {
    for (const path of versioned) {
      const { message } = await refusalOf(`/v1${path}`);
      expect(message).toBe(
        `There is nothing at '/v1${path}'. You probably mean '${path}'. Remove '/v1' from the base URL of your client, which adds it.`,
      );
      expect((await refusalOf(`/api${path}`)).message).toContain(`You probably mean '${path}'.`);
      expect((await refusalOf(`/v1/chat/completions${path}`)).message).toContain(`You probably mean '${path}'.`);
    }
    for (const path of paths.filter((path) => !path.startsWith("/v1/")))
      expect((await refusalOf(`/v1${path}`)).message).toContain(`You probably mean '${path}'.`);
  });

  test("is refused in the protocol of the path that was probably meant", async () => {
    for (const asked of [
      "/messages",
      "/v1/v1/messages",
      "/messages/count_tokens",
      "/v1/message",
      "/v1/messages/batches",
    ])
      expect(await refusalOf(asked)).toMatchObject({ isMessages: true, details: { error_code: "route_not_found" } });
    for (const asked of ["/chat/completions", "/responses", "/v1/v1/responses", "/models"])
      expect(await refusalOf(asked)).toMatchObject({ isMessages: false, code: "route_not_found" });
    const headers = { "anthropic-version": "2023-06-01" };
    for (const asked of ["/models", "/v1/nothing"])
      expect(await refusalOf(asked, { headers })).toMatchObject({ isMessages: true });
  });
});

test("a slip is named: a slash at the end or doubled, a letter, another case", async () => {
  for (const [asked, meant] of [
    ["/v1/chat/completions/", "/v1/chat/completions"],
    ["/v1/models/", "/v1/models"],
    ["/v1//models", "/v1/models"],
    ["/v1/chat/completion", "/v1/chat/completions"],
    ["/V1/Chat/Completions", "/v1/chat/completions"],
    ["/v2/models", "/v1/models"],
    ["/v1/response", "/v1/responses"],
    ["/livez/", "/livez"],
    ["/readz", "/readyz"],
  ]) {
    const { message } = await refusalOf(asked!);
    expect(message).toBe(`There is nothing at '${asked}'. You probably mean '${meant}'.`);
  }
});

test("if no path is similar, none is suggested", async () => {
  for (const asked of ["/v1", "/x", "/v1/nothing", "/v1/responses/x", "/favicon.ico"]) {
    const { message } = await refusalOf(asked);
    expect(message).toBe(`There is nothing at '${asked}'. /openapi.json lists all paths.`);
  }
});

describe("a text without the form of an id", () => {
  const strays = ["compacted", "x", "chatcmpl-1", "resp_", `${response}/resume`, `${response}/x/input_items`];
  test("is no response: 404 route_not_found, whatever the method, with a key or without", async () => {
    for (const stray of strays) {
      for (const method of ["POST", "GET", "DELETE", "PUT"]) {
        const init = { method, ...(method === "GET" ? { body: null } : {}), key: null };
        const refusal = await refusalOf(`/v1/responses/${stray}`, init);
        expect({ stray, method, ...refusal }).toMatchObject({ status: 404, code: "route_not_found" });
      }
    }
    const items = await service.fetch("/v1/responses/x/input_items");
    expect((await errorOf(items)).code).toBe("route_not_found");
  });

  test("is no request's receipt", async () => {
    for (const stray of ["x", "resp_1", "req_", `${request}/x`]) {
      const answer = await service.fetch(`/v1/service/requests/${stray}`);
      expect([answer.status, (await errorOf(answer)).code]).toEqual([404, "route_not_found"]);
    }
  });

  test("but begins like one is an id that nobody has", async () => {
    for (const [path, code] of [
      ["/v1/responses/resp_x", "response_not_found"],
      ["/v1/responses/resp_x/input_items", "response_not_found"],
      ["/v1/service/requests/req_x", "request_not_found"],
    ] as const) {
      const answer = await service.fetch(path);
      expect([answer.status, (await errorOf(answer)).code]).toEqual([404, code]);
      expect((await service.fetch(path, { key: null })).status).toBe(401);
      expect((await service.fetch(path, { method: "PUT" })).status).toBe(405);
    }
  });
});

describe("a path in a message", () => {
  test("is short and printable, and has no key, whatever the request was", async () => {
    const piece = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.constantFrom("/", "v1", "models", "%00", "%"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
        const path = `/nothing/${pieces.join("").replaceAll(/[\s?#]/g, "")}`;
        // Clients resolve `..` before they send the path, so it becomes another path.
        fc.pre(new URL(path, service.url).pathname.startsWith("/nothing/"));
        const { status, message } = await refusalOf(path);
        expect(status).toBe(404);
        expect(message).toMatch(/^[\x20-\x7e…]{1,400}$/);
      }),
      { numRuns: 200 },
    );
    const long = await refusalOf(`/${"models/".repeat(1500)}`);
    expect(long.message.length).toBeLessThan(400);
    const { message } = await refusalOf(`/${service.key}/v1/models`);
    expect(message).not.toContain(service.key);
    expect(message).toContain("'/v1/models'");
  });

  test("has no host", async () => {
    for (const [target, host, said] of [
      ["/nothing", "[", "There is nothing at '/nothing'."],
      ["/v1/responses/y", "[", "There is nothing at '/v1/responses/y'."],
      ["//v1/models", "localhost", "There is nothing at '//v1/models'. You probably mean '/v1/models'."],
      ["http://else.where/v1/v1/models", "localhost", "There is nothing at '/v1/v1/models'."],
    ] as const) {
      const client = await rawClient(service.url);
      await client.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      const answer = await client.read();
      expect(answer).toStartWith("HTTP/1.1 404");
      expect(answer).toContain(said);
      client.leave();
    }
  });
});
