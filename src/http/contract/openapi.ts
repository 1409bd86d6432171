/**
 * The contract as an OpenAPI 3.1 document, made from the operations and their typebox values, for the catalog in force.
 * Pure: the same catalog and version give the same bytes.
 */
import type { TSchema } from "typebox";
import { keyPattern } from "../../auth/key.ts";
import { faultCatalogue } from "../../inference/fault.ts";
import { Components, type Json, type JsonObject } from "./components.ts";
import {
  codesOf,
  type commonFaults,
  faultDescription,
  faultExample,
  faultHeaders,
  faultSchemas,
  statusesOf,
} from "./faults.ts";
import { headers } from "./headers.ts";
import { type Content, type ContractModel, exampleModel, type FaultShape, type Operation } from "./operation.ts";
import { operations } from "./operations.ts";

export const contractTitle = "Model inference service";

/** The document as it is checked in and served: keys in a fixed order, two spaces, a newline at the end. */
export function renderOpenapi(models: readonly ContractModel[], version: string): string {
  return `${JSON.stringify(openapiDocument(models, version), null, 2)}\n`;
}

export function openapiDocument(models: readonly ContractModel[], version: string): JsonObject {
  const components = new Components({
    ModelId: (schema) => ({ ...schema, enum: models.map((model) => model.id) }),
    ChatCompletionRequest: (schema) => chatRequest(schema, models),
  });
  const paths = pathsOf(components, models);
  const errorSchema = faultSchema("client", components);
  return {
    openapi: "3.1.0",
    info: { title: contractTitle, version, description: introduction },
    servers: [{ url: "/" }],
    tags: tags.map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas(),
      responses: {
        MethodNotAllowed: fault(
          "method_not_allowed",
          "This path does not answer DELETE. It answers POST.",
          errorSchema,
        ),
        RequestTooLarge: fault("request_too_large", "The body is larger than 33554432 bytes. Send less.", errorSchema),
        RouteNotFound: fault("route_not_found", "There is nothing at this path.", errorSchema),
        UpgradeNotSupported: fault(
          "upgrade_not_supported",
          "This path does not speak WebSocket. Send a POST, with 'stream' for server-sent events.",
          errorSchema,
        ),
      },
      headers: headers as unknown as JsonObject,
      securitySchemes,
    },
    "x-common-responses": {
      "404": { $ref: "#/components/responses/RouteNotFound" },
      "405": { $ref: "#/components/responses/MethodNotAllowed" },
      "413": { $ref: "#/components/responses/RequestTooLarge" },
      "426": { $ref: "#/components/responses/UpgradeNotSupported" },
    },
  };
}

const tags: [string, string][] = [
  ["Models", "Which models there are, and what they can do."],
  ["Inference", "Ask a model."],
  ["Usage", "What of the plan is used."],
  ["Health", "Probes. They need no key and replace no authenticated request."],
  ["Documentation", "This contract."],
];

const introduction = [
  "Hosted language models over an API whose chat completions and model list are compatible with OpenAI's, whose messages are compatible with Anthropic's, and whose responses are compatible with OpenAI's Responses: a client connects by changing only the base URL, the API key and the model id.",
  "**Credential.** Send `Authorization: Bearer <key>`; `x-api-key: <key>` is accepted as well. A key has some of the scopes `models:read`, `inference:create` and `usage:read`; an operation that needs another answers 403.",
  "**Request id.** Every answer carries `x-service-request-id`, also as `x-request-id` and `request-id`, and as `request_id` in error bodies.",
  "**Errors** have one shape, `Error`: five keys, always present. `code` is for programs, `message` for people, `param` is the path of the first offending field. Messages clients get theirs, `MessagesError`: on the paths of Messages always, on the models with an `anthropic-version` header. There the message begins with that path, and the code is `error.details.error_code`. On the paths of Responses it is `ResponsesError`: `Error`, but for the type of `usage_limit_reached`, which is that word itself.",
  "**Before an operation is entered**, any path may answer 404 `route_not_found` (there is nothing at the path; a trailing slash is another path), 405 `method_not_allowed` (with `allow`) or 413 `request_too_large`, and a request to turn `GET /v1/responses` into a WebSocket 426 `upgrade_not_supported`; they are described once, under `components.responses`. `HEAD` works wherever `GET` does, without a body.",
  "**Requests** are `application/json`, plain or with the content encoding gzip, deflate, br or zstd. An explicit null in an optional field equals its absence.",
  "**Compatibility.** New fields may appear in answers; a client ignores what it does not know.",
].join("\n\n");

const securitySchemes: JsonObject = {
  bearer: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "API key",
    description: `An API key. Keys match \`${keyPattern}\`; the last six characters are a checksum.`,
    "x-key-pattern": keyPattern,
  },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "The same key. `Authorization` wins." },
};

/** Fields that some model accepts beyond the contract are named; everything else is refused, and the document says so. */
function chatRequest(schema: JsonObject, models: readonly ContractModel[]): JsonObject {
  const extra: JsonObject = {};
  for (const name of [...new Set(models.flatMap((model) => model.extraParams))].sort()) {
    const accepting = models.filter((model) => model.extraParams.includes(name)).map((model) => `\`${model.id}\``);
    extra[name] = { description: `Accepted by ${accepting.join(", ")} only, and handed on as it is.` };
  }
  return { ...schema, properties: { ...(schema.properties as JsonObject), ...extra }, additionalProperties: false };
}

function pathsOf(components: Components, models: readonly ContractModel[]): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const written = operationObject(operation, components, models);
    paths[operation.path] = { ...paths[operation.path], [operation.method]: written };
  }
  return paths;
}

function operationObject(operation: Operation, components: Components, models: readonly ContractModel[]): JsonObject {
  const { operationId, tag, summary, scope } = operation;
  return {
    operationId,
    tags: [tag],
    summary,
    description: operation.description + scopeSaid(scope),
    security: securityOf(scope),
    ...(operation.parameters ? { parameters: parametersOf(operation, components, models) } : {}),
    ...(operation.request ? { requestBody: requestBody(operation, operation.request, components, models) } : {}),
    responses: responsesOf(operation, components, models),
  };
}

function scopeSaid(scope: Operation["scope"]): string {
  if (scope === null) return "";
  return scope === "any" ? "\n\nNeeds a key, with whatever scopes." : `\n\nNeeds the scope \`${scope}\`.`;
}

/** In 3.1 the array of a scheme without flows holds role names: the scope. */
function securityOf(scope: Operation["scope"]): Json[] {
  if (scope === null) return [];
  const roles = scope === "any" ? [] : [scope];
  return [{ bearer: roles }, { apiKey: roles }];
}

function faultSchema(shape: FaultShape | undefined, components: Components): JsonObject {
  const schemas = faultSchemas(shape).map((schema) => components.schemaOf(schema));
  return schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
}

function parametersOf(operation: Operation, components: Components, models: readonly ContractModel[]): Json[] {
  return operation.parameters!.map(({ name, in: place, description, required, schema, mayBeEmpty, example }) => ({
    name,
    in: place,
    required,
    description,
    ...(mayBeEmpty ? { allowEmptyValue: true } : {}),
    schema: components.schemaOf(schema),
    ...(example && models[0] ? { example: example(models[0].id) } : {}),
  }));
}

function requestBody(
  operation: Operation,
  schema: TSchema,
  components: Components,
  models: readonly ContractModel[],
): JsonObject {
  const examples: JsonObject = {};
  for (const example of operation.examples) {
    const model = exampleModel(models, example.needs);
    if (model === null) continue;
    examples[example.name] = { summary: example.summary, value: example.request(model).body as Json };
  }
  return { required: true, content: { "application/json": { schema: components.schemaOf(schema), examples } } };
}

function responsesOf(operation: Operation, components: Components, models: readonly ContractModel[]): JsonObject {
  const errorSchema = faultSchema(operation.faultShape, components);
  const { success, faults } = operation;
  const content = (of: Record<string, Content>) => contentOf(of, components, models);
  const responses: Record<string, JsonObject> = {
    "200": response(success.description, success.headers, content(success.content)),
  };
  for (const [status, answer] of Object.entries(success.also ?? {}))
    responses[status] = response(answer.description, answer.headers, content(answer.content));
  for (const status of statusesOf(faults)) {
    const codes = codesOf(status, faults);
    const body = { "application/json": { schema: errorSchema } };
    responses[String(status)] = response(faultDescription(codes), faultHeaders(status), body);
  }
  if (operation.otherFaults) {
    const body = { "application/json": { schema: errorSchema } };
    const where = operation.faultShape === "messages" ? "`error.details.error_code`" : "`code`";
    const named = operation.otherFaultHeaders ?? [];
    responses.default = response(`Any other refusal or failure; ${where} says which.`, named, body);
  }
  return responses;
}

function contentOf(
  content: Record<string, Content>,
  components: Components,
  models: readonly ContractModel[],
): JsonObject {
  const written: Record<string, JsonObject> = {};
  for (const [contentType, { schema, description, example }] of Object.entries(content)) {
    const reference = components.schemaOf(schema);
    const stream: JsonObject = { type: "string", ...(description ? { description } : {}) };
    const media: JsonObject =
      contentType === "text/event-stream" ? { schema: stream, "x-event-schema": reference } : { schema: reference };
    if (example !== undefined) media.example = withModel(example, models);
    written[contentType] = media;
  }
  return written;
}

/** Examples of answers are written with a model's name that no catalog has. */
function withModel(example: unknown, models: readonly ContractModel[]): Json {
  return JSON.parse(JSON.stringify(example).replaceAll("vendor/model", models[0]?.id ?? "vendor/model")) as Json;
}

function response(description: string, named: readonly string[], content: JsonObject): JsonObject {
  const all = ["x-service-request-id", ...named];
  return {
    description,
    headers: Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    content,
  };
}

function fault(code: (typeof commonFaults)[number], message: string, schema: JsonObject): JsonObject {
  const { status } = faultCatalogue[code];
  const body = { "application/json": { schema, example: faultExample(code, message) as Json } };
  return response(faultDescription([code]), faultHeaders(status), body);
}
