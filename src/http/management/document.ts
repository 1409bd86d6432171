/** The management contract as an OpenAPI 3.1 document, made from its operations. Pure: the same version gives the same bytes. */
import type { TSchema } from "typebox";
import Type from "typebox";
import { Components, type Json, type JsonObject } from "../../api/openapi/components.ts";
import { codesOf, faultDescription, statusesOf } from "../../api/openapi/faults.ts";
import { parametersOf } from "../../api/parameters.ts";
import { operatorTokenPattern } from "../../auth/key.ts";
import type { FaultCode } from "../../inference/fault.ts";
import { nullable } from "../../protocol/shapes/contract.ts";
import { BudgetedKeyRecord, TeamRecord } from "./budget-shapes.ts";
import { type ManagementOperation, managementPath } from "./operation.ts";
import { KeyRecord, OrganizationRecord, PlanRecord } from "./shapes.ts";
import type { ManagementTag } from "./tag.ts";

export const contractPath = "/management.json";
export const managementTitle = "Sluice management";

/** The document as it is checked in and served. */
export function renderManagement(operations: readonly ManagementOperation[], version: string): string {
  return `${JSON.stringify(managementDocument(operations, version), null, 2)}\n`;
}

export function managementDocument(operations: readonly ManagementOperation[], version: string): JsonObject {
  const components = new Components();
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const path = managementPath + operation.path;
    paths[path] = { ...paths[path], [operation.method]: operationObject(operation, components) };
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

const tags: [ManagementTag, string][] = [
  ["Organizations", "Who owns keys, has a plan, and is charged."],
  ["Keys", "The secrets with which clients call."],
  ["Teams", "Groups of an organization's keys, with limits of their own."],
  ["Plans", "The limits of organizations, by name."],
  ["Usage", "What organizations used."],
  ["Requests", "Single inference requests."],
  ["Audit", "Who did what, chained by hash."],
  ["Notices", "What organizations are told by webhook: docs/notices.md."],
  ["Operators", "Who may use this interface."],
];

const introduction = [
  "Administers a Sluice service: what the commands of the same names do. It is served on the operator's port only.",
  "**Authentication.** Send `Authorization: Bearer <token>` with an operator token (`slo_…`). `sluice operator create` on the node makes the first one. An `admin` may do all, a `viewer` reads, and an `organization-admin` reads and manages what is of one organization; to it, nothing else exists. An API key opens nothing here, and an operator token infers nothing.",
  "**Lists** come in parts, in a stable order: send `next_cursor` as `cursor` until it is null.",
  "**Repeats are harmless.** A creation takes an `idempotency-key`: the same request with the same key, within 7 days, answers what was made the first time, without its secret. Changes set values; revocations can be repeated. Only rotations and adjustments of usage act anew each time.",
  "**Two at once.** What has a `version` sends it as `etag`. A change with `if-match` is refused with 412 if the version is another one by now; the error's `current` is what would have been overwritten.",
  "**Errors** have five keys, always present: `code` is for programs, `message` for people. Fields and parameters that do not exist are refused.",
].join("\n\n");

/** What every operation may refuse before its verb is reached. */
const commonFaults = [
  "invalid_value",
  "unknown_field",
  "missing_operator_token",
  "invalid_operator_token",
  "missing_role",
  "tls_required",
  "host_not_allowed",
  "rate_limit_exceeded",
  "overloaded",
  "storage_unavailable",
  "internal_error",
] as const satisfies FaultCode[];

export function faultsOf({ method, kind, id, takes, verb }: ManagementOperation): FaultCode[] {
  const of: FaultCode[] = [...commonFaults];
  if (method !== "get") of.push("invalid_json", "invalid_content_type", "missing_field", "request_too_large");
  const names = id !== undefined || Object.hasOwn(takes?.properties ?? {}, "organization");
  if (names || verb.startsWith("page")) of.push("resource_not_found");
  if (kind === "creation") of.push("already_exists", "idempotency_key_reused");
  if (kind === "change") of.push("version_conflict");
  if (verb === "updateTeam" || verb === "renameOrganization") of.push("already_exists");
  // Nothing is made in an organization that is closed.
  if (kind === "act" || kind === "change" || verb === "createKey" || verb === "createTeam") of.push("wrong_state");
  return of;
}

const ManagementFault = Type.Object(
  {
    error: Type.Object({
      message: Type.String({ description: "What is wrong, and what to do about it." }),
      type: Type.String(),
      param: nullable(Type.String({ description: "Path of the first offending field." })),
      code: Type.String(),
      request_id: Type.String({ pattern: "^req_[0-9a-f]{32}$" }),
      current: Type.Optional(Type.Union([OrganizationRecord, PlanRecord, TeamRecord, KeyRecord, BudgetedKeyRecord])),
    }),
  },
  { $id: "Error" },
);

function operationObject(operation: ManagementOperation, components: Components): JsonObject {
  const { verb, tag, summary, description, also, method, takes, answers, example } = operation;
  const faults = faultsOf(operation);
  const error = { "application/json": { schema: components.schemaOf(ManagementFault) } };
  const refusals = statusesOf(faults).map((status): [string, JsonObject] => [
    String(status),
    { description: faultDescription(codesOf(status, faults)), content: error },
  ]);
  const parameters = parameterObjects(operation, components);
  return {
    operationId: verb,
    tags: [tag],
    summary,
    description: `${description}\n\nFor the role ${["admin", ...also].map((role) => `\`${role}\``).join(", ")}.`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(method === "get" ? {} : { requestBody: requestBody(takes!, example.takes ?? {}, components) }),
    responses: { "200": success(operation, components.schemaOf(answers)), ...Object.fromEntries(refusals) },
  };
}

function success({ summary, example, answers, formats = {} }: ManagementOperation, schema: JsonObject): JsonObject {
  const isVersioned = Object.hasOwn((answers as { properties?: object }).properties ?? {}, "version");
  const etag = { etag: { description: "The version, for `if-match`.", schema: { type: "string" } } };
  return {
    description: summary,
    ...(isVersioned ? { headers: etag } : {}),
    content: {
      "application/json": { schema, example: example.answer as Json },
      ...Object.fromEntries(Object.values(formats).map(({ type }) => [type, { schema: { type: "string" } }])),
    },
  };
}

function requestBody(takes: TSchema, example: Record<string, unknown>, components: Components): JsonObject {
  const schema = { ...components.schemaOf(takes), additionalProperties: false };
  return { required: true, content: { "application/json": { schema, example: example as JsonObject } } };
}

function parameterObjects(operation: ManagementOperation, components: Components): Json[] {
  const { id, method, kind, takes, example } = operation;
  const inPath = { name: "id", in: "path", required: true, schema: { type: "string" }, example: example.id ?? "" };
  const header = (name: string, description: string) => ({
    ...{ name, in: "header", required: false, description },
    schema: { type: "string" },
  });
  const query = (method === "get" && takes ? parametersOf(takes) : []).map(([name, parameter, required]) => {
    const { description = "", "x-must-be": _, ...schema } = parameter;
    return { name, in: "query", required, description, schema: components.schemaOf(schema) };
  });
  return [
    ...(id === undefined ? [] : [inPath]),
    ...(kind === "creation" ? [header("idempotency-key", "Makes a repeat harmless.")] : []),
    ...(kind === "change"
      ? [header("if-match", "The `etag` that was read: else whatever is there is overwritten.")]
      : []),
    ...query,
  ];
}
