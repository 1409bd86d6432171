/**
 * The contract of management as an OpenAPI 3.1 document, made from the verbs (its operations). Pure: the same version
 * gives the same bytes.
 */
import type { TSchema } from "typebox";
import Type from "typebox";
import { operatorTokenPattern } from "../../core/auth/credential.ts";
import { managementStatusOf } from "../../core/inference/fault.ts";
import { parametersOf } from "../../core/operations/serve-operation.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { encode } from "../../core/schema/codec.ts";
import { Components, type Json, type JsonObject } from "../../features/openapi/components.ts";
import { codesOf, faultDescription, statusesOf } from "../../features/openapi/faults.ts";
import type { Live, Tag, Verb } from "../management/verb.ts";
import { verbs } from "../management/verbs.ts";
import { faultsOf, managementPath, placesOf } from "./gate.ts";

export const contractPath = "/management.json";
export const managementTitle = "Sluice management";

/** The document's text, as it is checked in and served. */
export function renderManagement(version: string): string {
  return `${JSON.stringify(managementDocument(version), null, 2)}\n`;
}

export function managementDocument(version: string): JsonObject {
  const components = new Components();
  const paths: Record<string, JsonObject> = {};
  for (const verb of verbs) {
    const path = managementPath + verb.path;
    paths[path] = { ...paths[path], [verb.method]: operationObject(verb, components) };
  }
  return {
    openapi: "3.1.0",
    info: { title: managementTitle, version, description: introduction },
    servers: [{ url: "/" }],
    tags: tags.map(([name, description]) => ({ name, description })),
    security: [{ operator: [] }],
    paths,
    components: {
      schemas: components.schemas(),
      securitySchemes: {
        operator: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "Operator token",
          description: `An operator token. Tokens match \`${operatorTokenPattern}\`; the last six characters are a checksum.`,
        },
      },
    },
  };
}

const tags: [Tag, string][] = [
  ["Organizations", "Who owns keys, has a plan, and is charged."],
  ["Keys", "The secrets with which clients call."],
  ["Teams", "Groups of an organization's keys, with limits of their own."],
  ["Limits", "What organizations, teams, people and keys can use, and what they have used of it."],
  ["Plans", "The limits of organizations, by name."],
  ["Models", "What is served, and what it costs."],
  ["Upstreams", "The engines: how they answered, and which are out of service."],
  ["Fleet", "The nodes that serve."],
  ["Usage", "Usage of organizations."],
  ["Requests", "Single inference requests."],
  ["Audit", "The log of administrative actions, chained by hash."],
  ["Search", "One search over all that has a name or an ID."],
  ["Notices", "Where usage, expiring keys and failures are told: docs/notices.md."],
  ["Operators", "Who may use this interface."],
  ["People", "People who signed in through an issuer, and their memberships."],
  ["Console", "The pages for people: docs/console.md."],
];

const introduction = [
  "Administers a Sluice service, like the commands of the same names. It is served on the operator's port only.",
  "**Authentication.** Send `Authorization: Bearer <token>` with an operator token (`slo_…`). `sluice operator create` on the node makes the first one. An `admin` may do everything, a `viewer` may read everything except operators, and an `organization-admin` reads and manages one organization and sees no other. API keys don't work here, and operator tokens don't work on the API.",
  "**Lists** come in pages, in a stable order: send `next_cursor` as `cursor` until it is null.",
  "**Repeats.** A creation takes an `idempotency-key`: the same request with the same key, within 7 days, returns what was created the first time, without its secret. Changes set values, so they can be repeated, and revocations too. Only rotations take effect each time.",
  "**Concurrent changes.** An object with a `version` also sends it as `etag`. A change with `if-match` is refused with 412 if the object has another version by now; the error's `current` is what would have been overwritten.",
  "**Errors** have five keys, always present: `code` is for programs, `message` for people. Fields and parameters that do not exist are refused.",
].join("\n\n");

/**
 * The schemas of things with versions: a change that finds another version than its caller read returns the current
 * thing in the error.
 */
const changeable = new Set(verbs.filter(({ kind }) => kind === "change").map(({ answers }) => answers as TSchema));

const ManagementFault = Type.Object(
  {
    error: Type.Object({
      message: Type.String({ description: "What is wrong, and what to do about it." }),
      type: Type.String(),
      param: nullable(Type.String({ description: "Path of the first offending field." })),
      code: Type.String(),
      request_id: Type.String({ pattern: "^req_[0-9a-f]{32}$" }),
      current: Type.Optional(Type.Union([...changeable])),
    }),
  },
  { $id: "Error" },
);

function operationObject(verb: Verb, components: Components): JsonObject {
  const faults = faultsOf(verb);
  const error = { "application/json": { schema: components.schemaOf(ManagementFault) } };
  const refusals = statusesOf(faults, managementStatusOf).map((status): [string, JsonObject] => [
    String(status),
    { description: faultDescription(codesOf(status, faults, managementStatusOf)), content: error },
  ]);
  const parameters = parameterObjects(verb, components);
  const { body } = placesOf(verb);
  return {
    operationId: verb.name,
    tags: [verb.tag],
    summary: verb.summary,
    description: `${verb.description}\n\nFor the role ${verb.roles.map((role) => `\`${role}\``).join(", ")}.`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: requestBody(verb, body, components) } : {}),
    responses: { "200": success(verb, components.schemaOf(verb.answers)), ...Object.fromEntries(refusals) },
  };
}

function success({ summary, example, answers, formats = {}, live }: Verb, schema: JsonObject): JsonObject {
  const isVersioned = Object.hasOwn((answers as { properties?: object }).properties ?? {}, "version");
  const etag = { etag: { description: "The version, for `if-match`.", schema: { type: "string" } } };
  return {
    description: summary,
    ...(isVersioned ? { headers: etag } : {}),
    content: {
      "application/json": { schema, example: encode(answers, example.answer) as Json },
      ...Object.fromEntries(Object.values(formats).map(({ type }) => [type, { schema: { type: "string" } }])),
      ...(live ? { "text/event-stream": eventsOf(live, schema) } : {}),
    },
  };
}

function eventsOf({ event }: Live, schema: JsonObject): JsonObject {
  const description = `Events \`${event}\`, whose data is the answer. The stream ends with an event \`error\`, whose data is an error.`;
  return { schema: { type: "string", description }, "x-event-schema": schema };
}

function requestBody({ id, secondId, example }: Verb, body: TSchema, components: Components): JsonObject {
  const schema = { ...components.schemaOf(body), additionalProperties: false };
  const { [id ?? ""]: _, [secondId ?? ""]: __, ...sent } = example.takes as JsonObject;
  return { required: true, content: { "application/json": { schema, example: sent } } };
}

function parameterObjects(verb: Verb, components: Components): Json[] {
  const { id, secondId, example } = verb;
  const { headers, query } = placesOf(verb);
  const inPath = (name: string, member: string | null) => {
    if (member === null) return [];
    const pathExample = (example.takes as Record<string, string>)[member]!;
    return [{ name, in: "path", required: true, schema: { type: "string" }, example: pathExample }];
  };
  const objects = (place: "header" | "query", declared: typeof query) =>
    parametersOf(declared).map(([name, parameter, required]) => {
      const { description = "", "x-must-be": _, ...schema } = parameter;
      return { name, in: place, required, description, schema: components.schemaOf(schema) };
    });
  return [
    ...inPath("id", id),
    ...inPath(secondId ?? "", secondId),
    ...objects("header", headers),
    ...objects("query", query),
  ];
}
