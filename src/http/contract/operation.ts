/**
 * THE CONTRACT over HTTP, as data: what an operation is. The OpenAPI document, the request examples and the check of
 * answers are all made from the list in operations.ts; a new operation is one new entry there.
 */
import type { TSchema } from "typebox";
import type { FaultCode } from "../../inference/fault.ts";
import type { Model } from "../../inference/model.ts";
import type { Capability } from "../../inference/request.ts";
import type { Scope } from "../../store/directory.ts";
import type { HeaderName } from "./headers.ts";

/** What the document needs to know of the catalog in force. */
export type ContractModel = Pick<Model, "id" | "capabilities" | "extraParams">;

export interface Operation {
  operationId: string;
  method: "get" | "post" | "delete";
  /** As OpenAPI writes it: `/v1/models/{id}`. */
  path: string;
  tag: Tag;
  summary: string;
  description: string;
  /** `any`: a key is needed, whatever its scopes. `null`: none is. */
  scope: Scope | "any" | null;
  parameters?: Parameter[];
  request?: TSchema;
  success: Success;
  /** Every code it may refuse or fail with; each status among them is one JSON answer. */
  faults: readonly FaultCode[];
  /** Whether other error statuses, in the same shape, are described by `default`. */
  otherFaults: boolean;
  /** Headers of those. */
  otherFaultHeaders?: readonly HeaderName[];
  /** The shape of its refusals; `Error` unless said otherwise. */
  faultShape?: FaultShape;
  examples: Example[];
}

/** `messages`, `responses`: in the words of that protocol. `client`: `Error`, or Messages' words, as whoever asks reads them. */
export type FaultShape = "error" | "messages" | "responses" | "client";

export type Tag = "Models" | "Inference" | "Usage" | "Health" | "Documentation";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description: string;
  required: boolean;
  schema: TSchema;
  /** Whether its name alone means something, without a value. */
  mayBeEmpty?: boolean;
  /** A value as it looks, for the first model of the catalog. */
  example?: (modelId: string) => string;
}

export interface Success {
  description: string;
  /** The body of 200, by media type. */
  content: Record<string, Content>;
  headers: readonly HeaderName[];
  /** Further statuses that are an answer and not a fault (`/readyz` says 503 in its own words). */
  also?: Record<number, { description: string; content: Record<string, Content>; headers: readonly HeaderName[] }>;
}

/**
 * `schema` describes a JSON body; in an event stream, each event's data, in the order that `grammar` says. `example` is
 * what is shown.
 */
export interface Content {
  schema: TSchema;
  grammar?: StreamGrammar;
  description?: string;
  example?: unknown;
}

export type StreamGrammar = "chat" | "messages" | "responses";

/** A request that works as written, on a model of the catalog that has the capabilities it needs. */
export interface Example {
  /** A key in the document: `streamed`. */
  name: string;
  summary: string;
  needs: readonly Capability[];
  request(modelId: string): ExampleRequest;
  /** Status and media type of the answer. */
  status: number;
  contentType: string;
}

export interface ExampleRequest {
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** The first model of the catalog that has what an example needs; null where there is none. */
export function exampleModel(models: readonly ContractModel[], needs: readonly Capability[]): string | null {
  return models.find((model) => needs.every((need) => model.capabilities.has(need)))?.id ?? null;
}
