/**
 * Every operation makes its checks in the decided order (docs/design/service.md, Order of checks), whatever its handler
 * does, and nothing is served that is not in the list. The tests are generated from the list, so they cover a new
 * operation at once.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Type, { type TObject } from "typebox";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { type Listening, listen } from "../../../src/core/http/listen.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { probes } from "../../../src/core/operations/list.ts";
import { type Operation, operation } from "../../../src/core/operations/operation.ts";
import { parametersOf } from "../../../src/core/operations/serve-operation.ts";
import type { Scope } from "../../../src/core/store/directory.ts";
import { openapiDocument } from "../../../src/features/openapi/document.ts";
import { app, mount, type NodeDependencies, operatorApp } from "../../../src/node/app.ts";
import { metricsOperations, operations, unlistedOperations } from "../../../src/node/operations.ts";
import { nodeDependencies } from "./operator-port.ts";

const model = "acme/writer-1";
const served = [...operations, ...unlistedOperations, ...metricsOperations];
const handled = 299;

let listening: Listening;
let refused: { operation: string; errorCode: string }[] = [];
beforeAll(() => {
  const handle = () => new Response("{}", { status: handled });
  const handling = served.map((one) => ({ ...one, handle }));
  listening = listen(mount(dependencies(), handling), { host: "127.0.0.1", port: 0, idle_ms: 60_000 });
});
afterAll(() => listening.stop());

function neverAsked(): never {
  throw new Error("nobody asks");
}

/** Dependencies in which an API key is simply the list of its scopes. */
function dependencies(): NodeDependencies {
  const own: Partial<NodeDependencies> = {
    async authenticate(headers) {
      const key = headers.get("authorization");
      if (key === null) throw new Fault("missing_api_key", "No key.");
      const scopes = key.replace("Bearer ", "").split(",") as Scope[];
      return { key: { id: "key_1", scopes, models: null }, organization: { id: "org_1", plan: null } } as never;
    },
    arrivals: { take() {} },
    catalog: () => ({ models: new Map(), plans: new Map() }),
    refused: { add: (one) => void refused.push(one), find: async () => null },
    traces: null,
  };
  return nodeDependencies(own, 100_000);
}

interface Asked {
  method?: string;
  scopes?: string | null;
  query?: string;
  type?: string;
  body?: string;
}

async function ask(operation: Operation, asked: Asked) {
  const id = operation.idPrefix === undefined ? model : `${operation.idPrefix}x`;
  const method = asked.method ?? operation.method.toUpperCase();
  const response = await fetch(
    `${listening.url}${operation.path.replace("{id}", id)}${asked.query ?? exampleQuery(operation)}`,
    {
      method,
      headers: {
        ...(asked.scopes == null ? {} : { authorization: `Bearer ${asked.scopes}` }),
        ...(asked.type === undefined ? {} : { "content-type": asked.type }),
      },
      ...(asked.body === undefined || method === "GET" || method === "HEAD" ? {} : { body: asked.body }),
    },
  );
  const text = await response.text();
  const error = text.startsWith("{") ? (JSON.parse(text) as { error?: Refusal }).error : undefined;
  const { status, headers } = response;
  return {
    status,
    code: error?.code ?? error?.details?.error_code,
    message: error?.message,
    param: error?.param,
    headers,
  };
}

/** The query of the first example, so that a request is valid even if a query is required. */
function exampleQuery({ examples }: Operation): string {
  return /\?.*$/.exec(examples[0]?.request(model).path ?? "")?.[0] ?? "";
}

interface Refusal {
  code?: string;
  message: string;
  param?: string | null;
  details?: { error_code: string };
}

/** For each query parameter that can be invalid, a query with an invalid value. */
function wrongQueries({ query }: Operation): { param: string; query: string }[] {
  if (!query) return [];
  return parametersOf(query).flatMap(([name, schema]) => {
    if ("minLength" in schema) return [{ param: name, query: `?${name}=` }];
    return schema.type === "integer" || "enum" in schema ? [{ param: name, query: `?${name}=wrong` }] : [];
  });
}

const anyWrongQuery = (operation: Operation) => wrongQueries(operation)[0]?.query ?? "?stray=1";
const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const wrongBody = { type: "text/plain", body: "no json" };
const enough = ({ scope }: Operation) => (scope === null ? null : scope === "any" ? "none" : scope);

describe.each(served.map((one) => [one.operationId, one] as const))("%s", (_, operation) => {
  test("asks first for the method: 405, whoever asks, HEAD where there is a GET", async () => {
    const query = anyWrongQuery(operation);
    const answered = served.filter(({ path }) => path === operation.path).map(({ method }) => method.toUpperCase());
    for (const method of allMethods.filter((one) => !answered.includes(one))) {
      for (const scopes of [null, "none"]) {
        const answer = await ask(operation, { ...wrongBody, method, scopes, query });
        expect([answer.status, answer.code]).toEqual([405, "method_not_allowed"]);
        for (const one of [...answered, ...(answered.includes("GET") ? ["HEAD"] : [])])
          expect(answer.headers.get("allow")!.split(", ")).toContain(one);
      }
    }
    const head = await ask(operation, { method: "HEAD", scopes: enough(operation) });
    expect(head.status).toBe(answered.includes("GET") ? handled : 405);
  });

  test("asks then for a credential, and then for its scope, before it looks at anything else", async () => {
    const asked = { ...wrongBody, query: anyWrongQuery(operation) };
    if (operation.scope === null) return;
    expect(await ask(operation, { ...asked, scopes: null })).toMatchObject({ status: 401, code: "missing_api_key" });
    if (operation.scope === "any") return;
    const others = ["models:read", "inference:create", "usage:read"].filter((scope) => scope !== operation.scope);
    expect(await ask(operation, { ...asked, scopes: others.join() })).toMatchObject({
      status: 403,
      code: "missing_scope",
    });
  });

  test("says that it can refuse a credential, and that a scope can be missing only if it needs one", () => {
    expect(operation.faults.includes("invalid_api_key")).toBe(operation.scope !== null);
    expect(operation.faults.includes("missing_scope")).toBe(operation.scope !== null && operation.scope !== "any");
  });

  test("asks then for its parameters, and names the wrong one", async () => {
    for (const { param, query } of wrongQueries(operation)) {
      const answer = await ask(operation, { ...wrongBody, scopes: enough(operation), query });
      expect(answer).toMatchObject({ status: 400, code: "invalid_value", param });
      expect(answer.message).toStartWith(`'${param}' must be `);
    }
  });

  test("asks then for its body: content type, size, JSON, schema", async () => {
    if (!operation.request) return;
    const scopes = enough(operation);
    refused = [];
    const answers = [
      await ask(operation, { scopes, ...wrongBody }),
      await ask(operation, { scopes, type: "application/json", body: " ".repeat(100_001) }),
    ];
    expect(answers.map(({ code }) => code)).toEqual(["invalid_content_type", "request_too_large"]);
    // The bodies of operations that are not metered are checked by a worker.
    if (!operation.metered) return;
    answers.push(await ask(operation, { scopes, type: "application/json", body: "{" }));
    answers.push(await ask(operation, { scopes, type: "application/json", body: "{}" }));
    const codes = ["invalid_content_type", "request_too_large", "invalid_json", "missing_field"];
    expect(answers.map(({ code }) => code as string)).toEqual(codes);
    // Every refusal of a metered operation has a receipt.
    expect(refused.map(({ operation, errorCode }) => [operation, errorCode])).toEqual(
      codes.map((code) => [operation.metered, code]) as [string, string][],
    );
  });

  test("is handled when all is in order", async () => {
    const body = operation.examples[0]?.request(model).body;
    const sent = operation.request ? { type: "application/json", body: JSON.stringify(body) } : {};
    expect((await ask(operation, { scopes: enough(operation), ...sent })).status).toBe(handled);
  });
});

describe("what is served", () => {
  const idsOf = (elysia: ReturnType<typeof app>) =>
    new Set(
      elysia.routes.flatMap(({ hooks }) => {
        const { operationId, hide } = hooks.detail as { operationId?: string; hide?: boolean };
        return hide ? [] : [operationId];
      }),
    );
  const named = (list: readonly Operation[]) => new Set(list.map(({ operationId }) => operationId));

  test("is what the list says, on each port", () => {
    expect(idsOf(app(dependencies(), { metrics: true }))).toEqual(named(served));
    expect(idsOf(app(dependencies(), { metrics: false }))).toEqual(named([...operations, ...unlistedOperations]));
    const entrance = { authenticate: neverAsked, contextFor: neverAsked, tls: "off", version: "1" } as const;
    const operator = idsOf(operatorApp(dependencies(), entrance));
    const documentation = ["getManagementContract", "getManagementDocs", "getManagementDocsScript"];
    const names = verbs.map(({ name }) => name);
    expect(operator).toEqual(new Set([...named([...metricsOperations, ...probes]), ...names, ...documentation]));
  });

  test("is the value that the contract describes, but for the script of its page and the metrics", () => {
    const { paths } = openapiDocument(operations, [], "1") as { paths: Record<string, Record<string, object>> };
    const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((one) => one + path));
    expect(described.sort()).toEqual(operations.map(({ method, path }) => method + path).sort());
    expect([...named(unlistedOperations), ...named(metricsOperations)]).toEqual(["getDocsScript", "getMetrics"]);
  });

  test("says which scope it needs: without one it is no operation to the compiler", () => {
    const { scope: _, ...unguarded } = operations[0]!;
    // @ts-expect-error: a scope is missing.
    operation(unguarded);
    operation({ ...unguarded, scope: null });
  });

  test("has an id with slashes only at the end of its path, since nothing behind it would be found", () => {
    const { idPrefix: _, ...one } = { ...operations[0]!, path: "/v1/models/{id}/limits" };
    expect(() => operation(one)).toThrow("/v1/models/{id}/limits needs an idPrefix");
    operation({ ...one, idPrefix: "" });
    operation({ ...one, path: "/v1/models/{id}" });
  });
});

test("a handler has what its operation declares, and no principal where it asks for none", async () => {
  const query: TObject = Type.Object({ limit: Type.Integer({ minimum: 1, default: 7 }) });
  const base = { ...operations[0]!, examples: [] };
  const seen: unknown[] = [];
  const one = (path: string, scope: "models:read" | null): Operation =>
    operation({
      ...{ ...base, path, scope, query },
      handle(_dependencies, _call, input) {
        seen.push({ query: input.query, key: input.principal?.key.id ?? null });
        return new Response();
      },
    });
  const server = listen(mount(dependencies(), [one("/open", null), one("/closed", "models:read")]), {
    host: "127.0.0.1",
    port: 0,
    idle_ms: 60_000,
  });
  const headers = { authorization: "Bearer models:read" };
  try {
    await fetch(`${server.url}/open`, { headers });
    await fetch(`${server.url}/closed?limit=3`, { headers });
  } finally {
    await server.stop();
  }
  expect(seen).toEqual([
    { query: { limit: 7 }, key: null },
    { query: { limit: 3 }, key: "key_1" },
  ]);
});
