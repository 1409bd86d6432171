/**
 * AN OPERATION as one value: its path, its scope, its input and answers, its faults, its examples and its handler. The
 * values in list.ts and in src/node/operations.ts are mounted, guarded and described in the OpenAPI document. A new
 * operation is one new file and one new entry in the list of its core or its feature.
 */
import type { Static, TObject, TSchema } from "typebox";
import type { Principal } from "../auth/verdict.ts";
import type { Call } from "../http/call.ts";
import type { FaultBody } from "../http/fault-answer.ts";
import type { HttpAnswer } from "../http/frame.ts";
import type { Fault, FaultCode } from "../inference/fault.ts";
import type { ModelKind } from "../inference/model.ts";
import type { Capability } from "../inference/request.ts";
import type { Scope } from "../store/directory.ts";
import type { IdPrefix } from "../store/ids.ts";
import type { Operation as MeteredOperation } from "../store/ledger.ts";
import type { Soon } from "../time/turns.ts";
import type { ContentOwner } from "./adapter.ts";
import type { Dependencies } from "./dependencies.ts";

/** The model that examples name. In the OpenAPI document, the first model of the catalog takes its place. */
export const anyModel = "vendor/model";

/** `any`: a key is needed, whatever its scopes. `null`: no key is needed. */
export type RequiredScope = Scope | "any" | null;

interface Declared<
  Required extends RequiredScope,
  Params extends TObject,
  Query extends TObject,
  Headers extends TObject,
  Body,
> {
  operationId: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** The path in the form of OpenAPI: `/v1/models/{id}`. */
  path: string;
  /**
   * The prefix of the ids in the path; a path with another id does not belong to the operation. Empty: any id without a
   * slash. Absent: any id, which must be the end of the path.
   */
  idPrefix?: IdPrefix | "";
  tag: Tag;
  summary: string;
  description: string;
  scope: Required;
  /**
   * The operation's name in the ledger, if it is metered. Refusals of metered operations are counted, and have
   * receipts.
   */
  metered?: MeteredOperation;
  /**
   * The schemas of the parameters by place (path, query, headers). serve-operation.ts lists the keywords that describe them.
   */
  params?: Params;
  query?: Query;
  headers?: Headers;
  request?: RequestBody<Body>;
  success: Success;
  /**
   * Every code with which the handler or the body may fail; the codes of credentials follow from `scope`. Each status
   * among them has one JSON answer.
   */
  faults: readonly FaultCode[];
  /** Whether the OpenAPI document describes all other error statuses, in the same shape, as `default`. */
  otherFaults: boolean;
  /** The headers of a 429 that a limit causes. */
  limitRefusalHeaders?: readonly string[];
  /** The shape of the operation's error bodies; `error` by default. */
  faultShape?: FaultShape;
  /** Makes the error bodies, in place of those of `faultShape`. */
  faultBody?: FaultBody;
  /** The headers of a fault for clients of this operation, added to those of all operations. */
  faultHeaders?(fault: Fault, request: Request): Record<string, string>;
  /** Replaces a fault by the one that clients of this operation get. */
  refusedAs?(fault: Fault): Fault;
  /** The examples in the OpenAPI document. Absent: none, or those of src/features/openapi/examples. */
  examples?: readonly Example[];
  /** Called when credential, scope, parameters and body have been checked. Throws Faults. */
  handle(
    dependencies: Dependencies,
    call: Call,
    input: Input<Required, Params, Query, Headers, Body>,
  ): Soon<HttpAnswer>;
}

export interface Input<Required, Params extends TObject, Query extends TObject, Headers extends TObject, Body> {
  principal: Required extends null ? null : Principal;
  /** The parameters as they were sent, percent-encoded. */
  params: Static<Params>;
  query: Static<Query>;
  headers: Static<Headers>;
  body: Body;
}

/**
 * The body of a request. `schema` describes it. `read` reads the body within bounds and checks it. It throws, or rejects
 * with, the Fault of the body's first offence. A small body that has arrived may be returned without a promise.
 */
export interface RequestBody<Body> {
  schema: TSchema;
  read(dependencies: Dependencies, call: Call, organization: ContentOwner): Soon<Body>;
}

export type Operation = Declared<RequiredScope, TObject, TObject, TObject, unknown> & { examples: readonly Example[] };

type Nothing = TObject<Record<never, never>>;

function credentialFaults(scope: RequiredScope): readonly FaultCode[] {
  if (scope === null) return [];
  return [
    "missing_api_key",
    "invalid_api_key",
    "expired_api_key",
    "revoked_api_key",
    ...(scope === "any" ? [] : ["missing_scope" as const]),
    "organization_suspended",
    "person_suspended",
    "address_not_allowed",
  ];
}

/** The faults that every operation of inference can have. */
export const inferenceFaults = [
  "invalid_json",
  "invalid_content_type",
  "invalid_value",
  "missing_field",
  "unknown_field",
  "unsupported_feature",
  "context_length_exceeded",
  "no_active_plan",
  "model_not_allowed",
  "model_not_found",
  "rate_limit_exceeded",
  "concurrency_limit_exceeded",
  "usage_reserved",
  "capacity_exceeded",
  "usage_limit_reached",
  "internal_error",
  "upstream_unavailable",
  "upstream_timeout",
  "overloaded",
  "draining",
  "storage_unavailable",
] as const satisfies readonly FaultCode[];

export function operation<
  Required extends RequiredScope,
  Params extends TObject = Nothing,
  Query extends TObject = Nothing,
  Headers extends TObject = Nothing,
  Body = null,
>(declared: Declared<Required, Params, Query, Headers, Body>): Operation {
  const { path, idPrefix } = declared;
  if (idPrefix === undefined && /\{id\}./.test(path))
    throw new Error(
      `${path} needs an idPrefix ("" if ids have none): only an id at the end of a path may hold slashes.`,
    );
  const faults = [...credentialFaults(declared.scope), ...declared.faults];
  return { ...declared, faults, examples: declared.examples ?? [] } as unknown as Operation;
}

/**
 * The form of an operation's errors. `messages`, `responses`: the form of that protocol. `client`: `Error`, or the form
 * of Messages, depending on the client.
 */
export type FaultShape = "error" | "messages" | "responses" | "client";

/** The group of an operation in the contract, such as `Models`. */
export type Tag = string;

interface Success {
  status?: 101;
  description: string;
  content: Record<string, Content>;
  headers: readonly string[];
  /** Further statuses that are an answer and not a fault (`/readyz` answers 503 in a form of its own). */
  also?: Record<number, Omit<Success, "status" | "also">>;
}

/**
 * `schema` describes a JSON body, or the data of each event of a stream, in the order that `grammar` states. `example`
 * is shown in the OpenAPI document.
 */
export interface Content {
  schema: TSchema;
  grammar?: StreamGrammar;
  description?: string;
  example?: unknown;
}

export const jsonType = "application/json";

export function jsonSuccess(description: string, content: Content, headers: readonly string[] = []): Success {
  return { description, headers, content: { [jsonType]: content } };
}

export type StreamGrammar = "chat" | "messages" | "responses";

/** A request that works as written, on a model of the catalog with the capabilities that it needs. */
export interface Example {
  /** The example's key in the document, such as `streamed`. */
  name: string;
  summary: string;
  needs: readonly Capability[];
  /** The kind of the example's model; absent: `chat`. */
  kind?: ModelKind;
  request(modelId: string): ExampleRequest;
  status: number;
  contentType: string;
}

export interface ExampleRequest {
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
}
