/**
 * Makes the contract, an OpenAPI 3.1 document, from the operations and their typebox values, for the catalog in force.
 * Pure: the same catalog and version give the same bytes.
 */
import type { TSchema } from "typebox";
import { keyPattern } from "../../core/auth/credential.ts";
import { faultCatalogue } from "../../core/inference/fault.ts";
import { anyModel, type Content, type FaultShape, type Operation } from "../../core/operations/operation.ts";
import { parametersOf } from "../../core/operations/serve-operation.ts";
import { Components, type Json, type JsonObject } from "./components.ts";
import { type ContractModel, exampleModel } from "./contract-model.ts";
import {
  codesOf,
  type commonFaults,
  faultDescription,
  faultExample,
  faultHeaders,
  faultHeadersOf,
  faultShapes,
  statusesOf,
} from "./faults.ts";
import { headers } from "./headers.ts";
import { withRelations } from "./messages-relations.ts";

export const contractTitle = "Model inference service";

/** The text of the document: keys in a fixed order, two spaces of indentation, a newline at the end. */
export function renderOpenapi(
  operations: readonly Operation[],
  models: readonly ContractModel[],
  version: string,
): string {
  return `${JSON.stringify(openapiDocument(operations, models, version), null, 2)}\n`;
}

export function openapiDocument(
  operations: readonly Operation[],
  models: readonly ContractModel[],
  version: string,
): JsonObject {
  const components = new Components({
    ModelId: (schema) => ({ ...schema, enum: models.flatMap(({ id, aliases = [] }) => [id, ...aliases]) }),
    ChatCompletionRequest: (schema) => chatRequest(schema, models),
    MessagesRequest: withRelations,
  });
  const paths = pathsOf(operations, components, models);
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
          "This path does not support DELETE. It supports POST.",
          errorSchema,
        ),
        RequestTooLarge: fault("request_too_large", "The body is larger than 33554432 bytes. Send less.", errorSchema),
        RouteNotFound: fault(
          "route_not_found",
          "There is nothing at '/v1/v1/models'. You probably mean '/v1/models'. Remove '/v1' from the base URL of your client, which adds it.",
          errorSchema,
        ),
        UpgradeNotSupported: fault(
          "upgrade_not_supported",
          "This service has no room for another WebSocket now. Send a POST request with 'stream': true.",
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
  ["Models", "The available models, and what they can do."],
  ["Inference", "Send requests to a model."],
  ["Usage", "How much of the plan is used."],
  ["Health", "Health checks. They need no key, and say nothing about yours."],
  ["Documentation", "This contract."],
];

const introduction = [
  "An API for hosted language models. Chat completions and the model list are compatible with OpenAI's API, messages with Anthropic's, and responses with OpenAI's Responses API. To connect a client, change its base URL, its API key, and the model id.",
  "**Authentication.** Send `Authorization: Bearer <key>` or `x-api-key: <key>`. If you send both, the one that holds a key of this service is used; if both do, `Authorization`. A key has one or more of the scopes `models:read`, `inference:create` and `usage:read`. An operation whose scope the key lacks answers 403.",
  "**Request id.** Every response has the header `x-service-request-id`, also sent as `x-request-id` and `request-id`. Error bodies have it as `request_id`. Only what is refused before it is a request has neither an id nor a body: 400 for a head that is not HTTP, and 431 for one of more than 16 KiB or 198 fields.",
  "**Errors** have one shape, `Error`: five keys, always present. `code` is for programs, `message` for people, `param` is the path of the first offending field. Messages clients get `MessagesError` instead: always on the paths of Messages, and with an `anthropic-version` header on those of models. Its message begins with the path of the field, and its code is `error.details.error_code`. The paths of Responses answer `ResponsesError`: it equals `Error`, except that the type of `usage_limit_reached` is `usage_limit_reached` too.",
  "**Any path** can answer 404 `route_not_found` (there is nothing at the path; a trailing slash makes it another path; the message suggests the path that you probably mean), 405 `method_not_allowed` (with `allow`) or 413 `request_too_large`. A request to upgrade `GET /v1/responses` to a WebSocket that finds no room gets 426 `upgrade_not_supported`. These are described once, under `components.responses`. `HEAD` works wherever `GET` does, without a body.",
  "**Requests** are `application/json`, optionally with the content encoding gzip, deflate, br or zstd. A null in an optional field is the same as leaving the field out.",
  "**Compatibility.** New fields can appear in responses. Clients must ignore fields that they do not know.",
].join("\n\n");

const securitySchemes: JsonObject = {
  bearer: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "API key",
    description: `An API key. Keys match \`${keyPattern}\`; the last six characters are a checksum.`,
    "x-key-pattern": keyPattern,
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "The same key, in the header that Messages clients use.",
  },
};

/**
 * The schema of chat requests with the fields that some model accepts beyond the contract. All other fields are
 * refused, and the description says so.
 */
function chatRequest(schema: JsonObject, models: readonly ContractModel[]): JsonObject {
  const extra: JsonObject = {};
  for (const name of [...new Set(models.flatMap((model) => model.extraParams))].sort()) {
    const accepting = models.filter((model) => model.extraParams.includes(name)).map((model) => `\`${model.id}\``);
    extra[name] = { description: `Accepted by ${accepting.join(", ")} only, and forwarded unchanged.` };
  }
  return { ...schema, properties: { ...(schema.properties as JsonObject), ...extra }, additionalProperties: false };
}

function pathsOf(
  operations: readonly Operation[],
  components: Components,
  models: readonly ContractModel[],
): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const written = operationObject(operation, components, models);
    paths[operation.path] = { ...paths[operation.path], [operation.method]: written };
  }
  return paths;
}

function operationObject(operation: Operation, components: Components, models: readonly ContractModel[]): JsonObject {
  const { operationId, tag, summary, scope } = operation;
  const parameters = parameterObjects(operation, components, models);
  return {
    operationId,
    tags: [tag],
    summary,
    description: operation.description + scopeSentence(scope),
    security: securityOf(scope),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.request ? { requestBody: requestBody(operation, operation.request.schema, components, models) } : {}),
    responses: responsesOf(operation, components, models),
  };
}

function scopeSentence(scope: Operation["scope"]): string {
  if (scope === null) return "";
  return scope === "any" ? "\n\nNeeds a key, with any scope." : `\n\nNeeds the scope \`${scope}\`.`;
}

/** The scope as a security requirement. In OpenAPI 3.1, the array of a scheme without flows has role names. */
function securityOf(scope: Operation["scope"]): Json[] {
  if (scope === null) return [];
  const roles = scope === "any" ? [] : [scope];
  return [{ bearer: roles }, { apiKey: roles }];
}

function faultSchema(shape: FaultShape, components: Components): JsonObject {
  const schemas = faultShapes[shape].schemas.map((schema) => components.schemaOf(schema));
  return schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
}

function parameterObjects(operation: Operation, components: Components, models: readonly ContractModel[]): Json[] {
  const { params, query, headers } = operation;
  return Object.entries({ path: params, query, header: headers }).flatMap(([place, declared]) =>
    (declared ? parametersOf(declared) : []).map(([name, parameter, required]) => {
      const { description = "", example, allowEmptyValue, "x-must-be": _, ...schema } = parameter;
      return {
        name,
        in: place,
        required,
        description,
        ...(allowEmptyValue ? { allowEmptyValue } : {}),
        schema: components.schemaOf(schema),
        ...(example !== undefined && models[0] ? { example: withModel(example, models) } : {}),
      };
    }),
  );
}

function requestBody(
  operation: Operation,
  schema: TSchema,
  components: Components,
  models: readonly ContractModel[],
): JsonObject {
  const examples: JsonObject = {};
  for (const example of operation.examples) {
    const model = exampleModel(models, example);
    if (model === null) continue;
    examples[example.name] = { summary: example.summary, value: example.request(model).body as Json };
  }
  return { required: true, content: { "application/json": { schema: components.schemaOf(schema), examples } } };
}

function responsesOf(operation: Operation, components: Components, models: readonly ContractModel[]): JsonObject {
  const { success, faults, faultShape = "error" } = operation;
  const errorSchema = faultSchema(faultShape, components);
  const content = (of: Record<string, Content>) => contentOf(of, components, models);
  const responses: Record<string, JsonObject> = {
    [success.status ?? 200]: response(success.description, success.headers, content(success.content)),
  };
  for (const [status, answer] of Object.entries(success.also ?? {}))
    responses[status] = response(answer.description, answer.headers, content(answer.content));
  for (const status of statusesOf(faults)) {
    const codes = codesOf(status, faults);
    const body = { "application/json": { schema: errorSchema } };
    responses[String(status)] = response(faultDescription(codes), faultHeadersOf(operation, status), body);
  }
  if (operation.otherFaults) {
    const body = { "application/json": { schema: errorSchema } };
    const { code } = faultShapes[faultShape];
    const named = faultHeadersOf(operation, "default");
    responses.default = response(`Any other error; ${code} says which.`, named, body);
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

/** The example with a model of the catalog in place of the placeholder. */
function withModel(example: unknown, models: readonly ContractModel[]): Json {
  return JSON.parse(JSON.stringify(example).replaceAll(anyModel, models[0]?.id ?? anyModel)) as Json;
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
