/**
 * The published contracts: the guarantees for readers of openapi.json and management.json, and the page that shows
 * them, which requests nothing from any other host.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Errors } from "typebox/value";
import { renderManagement } from "../../../src/admin/http/document.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { defaultModels } from "../../../src/config/models.ts";
import { clientFaultCodes, faultCatalogue, managementFaultCodes } from "../../../src/core/inference/fault.ts";
import { modelKinds } from "../../../src/core/inference/model.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";
import { type ContractModel, exampleModel } from "../../../src/features/openapi/contract-model.ts";
import { openapiDocument, renderOpenapi } from "../../../src/features/openapi/document.ts";
import { headers } from "../../../src/features/openapi/headers.ts";
import { docsPage, docsScript } from "../../../src/features/openapi/page.ts";
import { contract, operations } from "../../../src/node/operations.ts";

const root = join(import.meta.dir, "../../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const models = defaultModels();
const text = renderOpenapi(contract, models, version);
const document = openapiDocument(contract, models, version) as unknown as Document;

interface Answer {
  headers: Record<string, object>;
  content: Record<string, object>;
}
interface Described {
  responses: Record<string, Answer>;
  requestBody?: { content: Record<string, { examples: Record<string, { value: unknown }> }> };
}
interface Document {
  paths: Record<string, Record<string, Described>>;
  components: {
    schemas: Record<string, { enum?: string[]; properties?: Record<string, unknown> }>;
    responses: Record<string, Answer>;
    securitySchemes: Record<string, Record<string, string>>;
  };
}

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

test("chat lists exactly nine JSON bodies, and a stream that is not one of them", () => {
  const { responses } = document.paths["/v1/chat/completions"]!.post!;
  expect(Object.keys(responses)).toEqual(["200", "400", "401", "402", "403", "404", "429", "500", "503"]);
  for (const { content } of Object.values(responses)) expect(content).toHaveProperty("application/json");
  expect(Object.keys(responses["200"]!.content)).toEqual(["application/json", "text/event-stream"]);
});

test("every answer carries x-service-request-id", () => {
  const all = Object.values(document.paths).flatMap((path) =>
    Object.values(path).flatMap((operation) => Object.values(operation.responses)),
  );
  for (const answer of [...all, ...Object.values(document.components.responses)])
    expect(answer.headers).toHaveProperty("x-service-request-id");
});

test("every header that an operation lists is described", () => {
  const listed = contract.flatMap(({ success, limitRefusalHeaders = [] }) => [
    ...[success, ...Object.values(success.also ?? {})].flatMap((answer) => answer.headers),
    ...limitRefusalHeaders,
  ]);
  for (const name of listed) expect(Object.keys(headers)).toContain(name);
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

test("what a key looks like is described", () => {
  const { bearer } = document.components.securitySchemes;
  expect(`slk_${"a".repeat(38)}`).toMatch(new RegExp(bearer!["x-key-pattern"]!));
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

test("nothing in it names the product", () => {
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

  test("clients of the API meet none of its faults, but for those with two statuses", () => {
    for (const code of managementFaultCodes.filter((one) => !("management" in faultCatalogue[one]))) {
      expect(clientFaultCodes).not.toContain(code);
      expect(text).not.toContain(`"${code}"`);
    }
  });
});

const script = docsScript();
const asking = (headers: Record<string, string>) => script(new Headers(headers));
const pages = {
  "openapi.json": docsPage(),
  "management.json": docsPage({ title: "Sluice management", document: "management.json" }),
};

describe.each(Object.entries(pages))("the page of %s", async (name, page) => {
  const response = await page();
  const html = await response.text();
  test("has its title: the API's is the service's, and names nothing of the product", () => {
    const isApi = name === "openapi.json";
    expect(html).toContain(`<title>${isApi ? "Model inference service" : "Sluice management"}</title>`);
    expect(html.toLowerCase().includes("sluice")).toBe(!isApi);
  });

  test("loads its script and the document from this host, by relative addresses, and nothing else", () => {
    const loaded = [...html.matchAll(/\b(?:src|href|data-url)=["']([^"']*)["']/g)].map(([, url]) => url);
    expect(loaded.sort()).toEqual(["docs/scalar.js", name].sort());
    expect(html).not.toMatch(/https?:|\/\/[a-z]/i);
  });

  test("has a policy that lets nothing come from another host, and no inline script", () => {
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'"])
      expect(policy).toContain(rule);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(html).not.toMatch(/<script[^>]*>\s*[^\s<]/);
  });

  test("switches off what would call home", () => {
    const settings = JSON.parse(/data-configuration='([^']*)'/.exec(html)?.[1] ?? "") as Record<string, unknown>;
    expect(settings).toMatchObject({ withDefaultFonts: false, telemetry: false, agent: { disabled: true } });
    expect(settings).not.toHaveProperty("proxyUrl");
  });
});

describe("the script", () => {
  test("is sent as gzip to those who take it, and plain to others; both are the same", async () => {
    const zipped = await asking({ "accept-encoding": "br, gzip;q=0.8" });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    const plain = await asking({ "accept-encoding": "gzip;q=0, identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    const bytes = Buffer.from(await plain.arrayBuffer());
    expect(gunzipSync(await zipped.arrayBuffer()).equals(bytes)).toBe(true);
    expect(bytes.toString("utf8", 0, 200_000)).toContain("scalar");
    expect(plain.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  });

  test("is not sent again to those who have it", async () => {
    const etag = (await asking({})).headers.get("etag") ?? "";
    const again = await asking({ "if-none-match": `"other", ${etag}` });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await asking({ "if-none-match": '"other"' })).status).toBe(200);
  });
});
