/**
 * A path that does not exist gets an error that names the requested path and the probably intended one. A path of
 * another API gets an error, in the format of that API, that says what this service lacks, and never a hint that would
 * not work.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { unservedApis, unservedAt } from "../../../src/features/unserved/unserved.ts";
import { operations } from "../../../src/node/operations.ts";
import { errorOf, model, startService } from "../../harness/engine.ts";
import { rawClient } from "../../harness/raw-client.ts";

setDefaultTimeout(60_000);

const service = await startService();
afterAll(() => service.stop());

interface Refusal {
  status: number;
  isMessages: boolean;
  message: string;
  code?: string;
  details?: { error_code?: string };
}
async function refusalOf(path: string, init: RequestInit & { key?: string | null } = {}): Promise<Refusal> {
  const answer = await service.fetch(path, { method: "POST", body: "{}", ...init });
  const body = (await answer.json()) as { type?: string; error: Omit<Refusal, "status" | "isMessages"> };
  return { status: answer.status, isMessages: body.type === "error", ...body.error };
}

/** The paths that an SDK's package requests, extracted from its source, with `{id}` for each inserted value. */
function pathsIn(name: string): string[] {
  const folder = dirname(Bun.resolveSync(`${name}/package.json`, import.meta.dir));
  const found = new Set<string>();
  for (const file of new Bun.Glob("{resources,internal,lib}/**/*.mjs").scanSync(folder)) {
    const source = readFileSync(join(folder, file), "utf8");
    const calls = /(?:\.(?:get|post|put|patch|delete|getAPIList)\(\s*|\bpath\s*)(?:'([^'`]+)'|`([^`]+)`)/g;
    for (const [, plain, template] of source.matchAll(calls)) {
      const path = (plain ?? template ?? "").split("?")[0]!.replaceAll(/\$\{[^}]+\}/g, "{id}");
      if (/^\/[a-z]/.test(path)) found.add(path.startsWith("/v1/") ? path : `/v1${path}`);
    }
  }
  return [...found].sort();
}

const served = new Set(operations.map(({ path }) => path));
const isServed = (path: string) => served.has(path);
/** The path with IDs inserted, in the format of the API's IDs. */
const filled = (path: string) =>
  path.replace("/chat/completions/{id}", "/chat/completions/chatcmpl-1").replaceAll("{id}", "x");

describe.each([
  ["openai", 200, "error"],
  ["@anthropic-ai/sdk", 150, "messages"],
] as const)("the SDK %s", (name, paths_min, form) => {
  const paths = pathsIn(name);
  const unserved = paths.filter((path) => !isServed(path));

  test("has no path that is neither served nor refused in words", () => {
    expect(paths.length).toBeGreaterThan(paths_min);
    expect(paths.length - unserved.length).toBeGreaterThan(3);
    expect(unserved.filter((path) => unservedAt(filled(path)) === null)).toEqual([]);
  });

  test("is refused with what the service lacks, in its own form of an error", async () => {
    const ofMessages = form === "messages";
    const headers: Record<string, string> = ofMessages ? { "anthropic-version": "2023-06-01" } : {};
    for (const path of unserved) {
      const asked = filled(path);
      const { status, code, details, message, isMessages } = await refusalOf(asked, { headers, key: null });
      const seen = [asked, status, code ?? details?.error_code, isMessages];
      expect(seen).toEqual([asked, 404, "route_not_found", ofMessages]);
      expect(message).toStartWith(`There is nothing at '${asked}': this service `);
      expect(message).not.toMatch(/probably|openapi/);
    }
  });
});

describe("the table", () => {
  const rows = unservedApis.flatMap(({ name, onlyMessages, rows }) =>
    rows.map((row) => ({ ...row, name, onlyMessages: onlyMessages === true })),
  );

  test("has each path once, and none that is served, under whatever base URL", () => {
    expect(new Set(rows.map(({ path }) => path)).size).toBe(rows.length);
    for (const path of [...served].filter((path) => path !== "/").map((path) => path.replace("{id}", "acme/writer-1")))
      for (const base of ["", "/v1", "/api", "/openai", "/v1beta/openai", "/v1/chat/completions"])
        expect([base + path, unservedAt(base + path)]).toEqual([base + path, null]);
  });

  test("finds each of its paths, with and without /v1, once more below, and with a slash at its end", () => {
    for (const { path, lack } of rows) {
      const root = filled(path.replace("/…", ""));
      const below = path.endsWith("/…") ? [`${root}/x`, `${root}/x/y`] : [];
      for (const asked of [root, ...below])
        for (const written of [asked, `/v1${asked}`, `/v1/v1${asked}`, `${asked}/`])
          expect([written, unservedAt(written)?.lack]).toEqual([written, lack]);
    }
  });

  test("names nothing as nearest that is not served, and to an SDK nothing of another protocol", () => {
    for (const { path, name, nearest = "" } of rows) {
      const named = [...nearest.matchAll(/'(\/[^']+)'/g)].map(([, one]) => one!);
      expect([path, named.filter((one) => one !== "/v1" && !isServed(one))]).toEqual([path, []]);
      if (name === "Anthropic") expect(nearest).not.toMatch(/chat|responses/);
      if (name === "OpenAI") expect(nearest).not.toContain("/v1/messages");
    }
  });
});

test("what has two APIs is refused in the form of its client, and Gemini's way to a model is no other method", async () => {
  const get = { method: "GET", body: null };
  const asMessages = await refusalOf("/v1/files", { ...get, headers: { "anthropic-version": "2023-06-01" } });
  expect(asMessages).toMatchObject({ details: { error_code: "route_not_found" } });
  expect((await refusalOf("/v1/files", get)).code).toBe("route_not_found");
  for (const version of ["v1", "v1beta"]) {
    const path = `/${version}/models/gemini-3:generateContent`;
    expect(await refusalOf(path)).toMatchObject({
      status: 404,
      message: `There is nothing at '${path}': this service does not speak the protocol of Gemini. It speaks chat completions at '/v1/chat/completions', Messages at '/v1/messages' and Responses at '/v1/responses'.`,
    });
  }
  expect((await refusalOf("/v1/models/acme/writer-1")).status).toBe(405);
});

const response = `resp_${"0".repeat(32)}`;
const request = `req_${"0".repeat(32)}`;
const idsIn = (path: string) =>
  path.replace("{id}", path.includes("/responses/") ? response : path.includes("/requests/") ? request : model);
const paths = [...new Set(operations.map(({ path }) => path))].filter((path) => path !== "/").map(idsIn);

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
    for (const stray of ["x", "resp_1", "req_", `${request}/x`, "%ff", "req_../x"]) {
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
        // Clients resolve `..` before they send a path. Paths that would leave `/nothing/` are skipped.
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
