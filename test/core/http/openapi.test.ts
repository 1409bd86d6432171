/** The published contracts: what readers of openapi.json and management.json may rely on. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Errors } from "typebox/value";
import { renderManagement } from "../../../src/admin/http/document.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { defaultModels } from "../../../src/config/models.ts";
import { clientFaultCodes, faultCatalogue, managementFaultCodes } from "../../../src/core/inference/fault.ts";
import { modelKinds } from "../../../src/core/inference/model.ts";
import { type ContractModel, exampleModel } from "../../../src/core/operations/operation.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";
import { openapiDocument, renderOpenapi } from "../../../src/features/openapi/document.ts";
import { docsPage } from "../../../src/features/openapi/page.ts";
import { contract, operations } from "../../../src/node/operations.ts";

const root = join(import.meta.dir, "../../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const models = defaultModels();
const text = renderOpenapi(contract, models, version);
const document = openapiDocument(contract, models, version) as unknown as Document;

interface Answer {
  $ref?: string;
  headers: Record<string, { $ref: string }>;
  content: Record<string, { schema: { $ref?: string } }>;
}
interface Described {
  responses: Record<string, Answer>;
  parameters?: { name: string; in: string; example?: string; schema: Record<string, unknown> }[];
  requestBody?: { content: Record<string, { examples: Record<string, { value: unknown }> }> };
  security: Record<string, string[]>[];
}
interface Document {
  paths: Record<string, Record<string, Described>>;
  components: {
    schemas: Record<string, { enum?: string[]; properties?: Record<string, unknown> }>;
    headers: Record<string, unknown>;
    responses: Record<string, Answer>;
    securitySchemes: Record<string, Record<string, string>>;
  };
}

const jsonStatuses = (operation: Described) =>
  Object.keys(operation.responses).filter((status) => "application/json" in operation.responses[status]!.content);

describe.each([
  ["openapi.json", text, "openapi"],
  ["management.json", renderManagement(version), "openapi --management"],
])("the checked-in %s", (name, written, command) => {
  test("is what the code says", () => {
    const path = join(root, "contract", name);
    if (!existsSync(path) || readFileSync(path, "utf8") !== written)
      throw new Error(
        `${name} and the code differ. \`npm run sluice -- ${command} --write contract/${name}\` writes it anew; review the diff.`,
      );
  });

  test("is accepted as OpenAPI 3.1 by an independent validator", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(written));
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
    expect(validator.version).toBe("3.1");
  });
});

test("the models are those of the catalog in force: 31 by default", () => {
  expect(document.components.schemas.ModelId?.enum).toEqual(models.map((model) => model.id));
  expect(new Set(document.components.schemas.ModelId?.enum).size).toBe(31);
  const other: ContractModel[] = [{ id: "acme/writer-1", capabilities: new Set(), extraParams: ["top_k"] }];
  const { schemas } = (openapiDocument(contract, other, version) as unknown as Document).components;
  expect(schemas.ModelId?.enum).toEqual(["acme/writer-1"]);
  expect(JSON.stringify(schemas.ChatCompletionRequest?.properties?.top_k)).toContain("acme/writer-1");
  expect(document.components.schemas.ChatCompletionRequest?.properties).not.toHaveProperty("top_k");
});

describe("answers", () => {
  test("chat lists exactly nine JSON bodies, and a stream that is not one of them", () => {
    const chat = document.paths["/v1/chat/completions"]!.post!;
    expect(jsonStatuses(chat)).toEqual(["200", "400", "401", "402", "403", "404", "429", "500", "503"]);
    expect(Object.keys(chat.responses)).toHaveLength(9);
    expect(Object.keys(chat.responses["200"]!.content)).toEqual(["application/json", "text/event-stream"]);
  });

  test("messages, their count, responses and usage list four", () => {
    const messages = document.paths["/v1/messages"]!.post!;
    const count = document.paths["/v1/messages/count_tokens"]!.post!;
    const responses = document.paths["/v1/responses"]!.post!;
    const usage = document.paths["/v1/service/usage"]!.get!;
    for (const operation of [messages, count, responses, usage])
      expect(jsonStatuses(operation)).toEqual(["200", "401", "403", "default"]);
    for (const operation of [messages, responses])
      expect(Object.keys(operation.responses["200"]!.content)).toEqual(["application/json", "text/event-stream"]);
  });

  test("what is kept of a response is fetched, deleted and listed, or is not found", () => {
    const kept = document.paths["/v1/responses/{id}"]!;
    const items = document.paths["/v1/responses/{id}/input_items"]!;
    expect([Object.keys(kept), Object.keys(items)]).toEqual([["get", "delete"], ["get"]]);
    for (const operation of [kept.get!, kept.delete!, items.get!]) {
      expect(jsonStatuses(operation)).toEqual(["200", "401", "403", "404", "default"]);
      expect(operation.security).toEqual(document.paths["/v1/responses"]!.post!.security);
      expect(operation.parameters?.[0]).toMatchObject({
        name: "id",
        in: "path",
        example: expect.stringMatching(/^resp_/),
      });
    }
    const query = items.get!.parameters!.slice(1).map(({ name, in: place, schema }) => [name, place, schema]);
    expect(query).toEqual([
      ["limit", "query", { type: "integer", minimum: 1, maximum: 100, default: 20 }],
      ["order", "query", { type: "string", enum: ["asc", "desc"], default: "desc" }],
      ["after", "query", { type: "string", minLength: 1 }],
    ]);
  });

  test("messages and responses refuse in their own words, models in those of whoever asks", () => {
    const schemaOf = (path: string, method: string) =>
      document.paths[path]![method]!.responses["401"]!.content["application/json"]!.schema;
    const messages = { $ref: "#/components/schemas/MessagesError" };
    const error = { $ref: "#/components/schemas/Error" };
    expect(schemaOf("/v1/messages", "post")).toEqual(messages);
    expect(schemaOf("/v1/messages/count_tokens", "post")).toEqual(messages);
    expect(schemaOf("/v1/responses", "post")).toEqual({ $ref: "#/components/schemas/ResponsesError" });
    expect(schemaOf("/v1/models", "get") as unknown).toEqual({ anyOf: [error, messages] });
    expect(schemaOf("/v1/service/usage", "get")).toEqual(error);
  });

  test("405, 413 and 426 are described once, for the whole contract", () => {
    for (const path of Object.values(document.paths))
      for (const operation of Object.values(path))
        for (const status of ["405", "413", "426"]) expect(operation.responses).not.toHaveProperty(status);
    expect(Object.keys(document.components.responses)).toEqual([
      "MethodNotAllowed",
      "RequestTooLarge",
      "RouteNotFound",
      "UpgradeNotSupported",
    ]);
  });

  test("every one carries x-service-request-id; successful inference carries usage and limit headers", () => {
    const all = Object.values(document.paths).flatMap((path) =>
      Object.values(path).flatMap((operation) => Object.values(operation.responses)),
    );
    for (const answer of [...all, ...Object.values(document.components.responses)])
      expect(answer.headers).toHaveProperty("x-service-request-id");
    for (const path of ["/v1/chat/completions", "/v1/responses"]) {
      const inference = Object.keys(document.paths[path]!.post!.responses["200"]!.headers);
      for (const name of ["x-service-usage-week-percent", "x-service-usage-month-reset-at", "x-ratelimit-reset-tokens"])
        expect(inference).toContain(name);
    }
  });
});

test("every reference leads somewhere, and every component is used", () => {
  const json = JSON.stringify(document);
  const used = new Set<string>();
  for (const [, place] of json.matchAll(/"(?:\$ref":"|[^"]*":")#\/([^"]+)"/g)) {
    used.add(place!);
    let at: unknown = document;
    for (const step of place!.split("/")) at = (at as Record<string, unknown> | undefined)?.[step];
    expect(at, place).toBeDefined();
  }
  for (const name of Object.keys(document.components.schemas)) expect(used).toContain(`components/schemas/${name}`);
  expect(json).not.toContain('"$id"');
});

test("keys are described: two ways to send one, the scope that each operation needs, and what a key looks like", () => {
  const { bearer, apiKey } = document.components.securitySchemes;
  expect(bearer).toMatchObject({ type: "http", scheme: "bearer" });
  expect(apiKey).toMatchObject({ type: "apiKey", in: "header", name: "x-api-key" });
  expect(`slk_${"a".repeat(38)}`).toMatch(new RegExp(bearer!["x-key-pattern"]!));
  expect(document.paths["/v1/models"]!.get!.security).toEqual([
    { bearer: ["models:read"] },
    { apiKey: ["models:read"] },
  ]);
  expect(document.paths["/livez"]!.get!.security).toEqual([]);
});

test("every request example satisfies the contract, and is possible on some model: of chat, on one of the default catalog", () => {
  const ofKinds = modelKinds.map(
    (kind): ContractModel => ({ id: `acme/${kind}`, capabilities: new Set(), extraParams: [], kind }),
  );
  for (const operation of operations) {
    for (const example of operation.examples) {
      const model = exampleModel([...models, ...ofKinds.slice(1)], example);
      expect(model, example.name).not.toBeNull();
      const { body } = example.request(model!);
      if (body !== undefined) expect([...Errors(operation.request!.schema, body)], example.name).toEqual([]);
    }
  }
  const shown = document.paths["/v1/chat/completions"]!.post!.requestBody!.content["application/json"]!.examples;
  expect(Object.keys(shown)).toContain("structured_output");
});

test("the same catalog gives the same bytes, and nothing in them names the product", () => {
  expect(renderOpenapi(contract, defaultModels(), version)).toBe(text);
  expect(text.endsWith("}\n")).toBe(true);
  expect(text.toLowerCase()).not.toContain("sluice");
});

describe("management.json", () => {
  test("every example is what its schema says, and asks for what is taken", () => {
    for (const { name, answers, input, example } of verbs) {
      const json = encode(answers, example.answer);
      expect([name, [...Errors(answers, json)]]).toEqual([name, []]);
      expect([name, [...Errors(input, example.takes)]]).toEqual([name, []]);
      expect([name, decode(answers, json)]).toEqual([name, example.answer]);
    }
  });

  test("its page shows it, and asks no other host", async () => {
    const html = await (await docsPage({ title: "Sluice management", document: "management.json" })()).text();
    expect(html).toContain("<title>Sluice management</title>");
    const loaded = [...html.matchAll(/\b(?:src|href|data-url)=["']([^"']*)["']/g)].map(([, url]) => url);
    expect(loaded.sort()).toEqual(["docs/scalar.js", "management.json"]);
  });

  test("clients of the API meet none of its faults, but for those with two statuses", () => {
    for (const code of managementFaultCodes.filter((one) => !("management" in faultCatalogue[one]))) {
      expect(clientFaultCodes).not.toContain(code);
      expect(text).not.toContain(`"${code}"`);
    }
  });
});
