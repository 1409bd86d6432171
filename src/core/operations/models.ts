/** GET /v1/models and /v1/models/{id}. With an `anthropic-version` header they answer in the form of Messages. */
import Type from "typebox";
import { json } from "../http/json.ts";
import { Fault } from "../inference/fault.ts";
import type { Prices, Retirement } from "../inference/model.ts";
import { type Currency, priceOfMillion } from "../inference/money.ts";
import { answeringModel, isAllowed, retirementHeadersOf, type ServedName, servedNames } from "../routing/catalog.ts";
import { getExample } from "./examples.ts";
import { retirementHeaderNames } from "./headers.ts";
import { anyModel, jsonSuccess, operation } from "./operation.ts";
import { wrongParameter } from "./serve-operation.ts";
import { MessagesModel, MessagesModelList, ModelDetails, ModelList } from "./shapes.ts";

const headers = Type.Object({
  "anthropic-version": Type.Optional(
    Type.String({
      description:
        "If present, with any value, the response and its errors have the form that Messages clients expect.",
    }),
  ),
});
/** The most models on one page, by the protocol of Messages. */
const page_max = 1000;
const forMessagesClients = { headers: { "anthropic-version": "2023-06-01" } };
const encodedPath = (id: string) => `/v1/models/${encodeURIComponent(id)}`;

export const listModels = operation({
  operationId: "listModels",
  method: "get",
  path: "/v1/models",
  tag: "Models",
  summary: "List the models",
  description: "Every active model, by its id and by each of its aliases.",
  scope: "models:read",
  query: Type.Object({
    client_version: Type.Optional(
      Type.String({ description: "If present, with any value, `models` has the list that Codex expects." }),
    ),
    limit: Type.Optional(
      Type.String({
        description: `In the form of Messages: the most models of a page, from 1 to ${page_max}. Without it, all are there.`,
      }),
    ),
    after_id: Type.Optional(
      Type.String({ description: "In the form of Messages: the page begins after the model with this id." }),
    ),
    before_id: Type.Optional(
      Type.String({ description: "In the form of Messages: the page ends before the model with this id." }),
    ),
  }),
  headers,
  success: jsonSuccess("The models.", {
    schema: Type.Union([ModelList, MessagesModelList]),
    example: {
      object: "list",
      data: [{ id: "vendor/model", object: "model", created: 1790000000, owned_by: "vendor" }],
    },
  }),
  faults: [],
  otherFaults: true,
  faultShape: "client",
  examples: [
    getExample("list", "All models", "/v1/models"),
    getExample("list_for_codex", "All models, with the list that Codex expects", "/v1/models?client_version=0.169.0"),
    getExample("list_for_messages_clients", "All models, in the form of Messages", "/v1/models", forMessagesClients),
  ],
  handle(dependencies, _call, { headers, query, principal: { key } }) {
    const served = servedNames(dependencies.catalog(), Date.now());
    if (forMessages(headers)) return json(200, messagesList(served, query));
    const usable = served.filter(({ model }) => isOfChat(model) && isAllowed(model, key));
    const named = usable.map(({ name, model }) => ({ ...model, id: name }));
    const more = query.client_version === undefined ? {} : { models: dependencies.codexModels(named) };
    return json(200, { object: "list", data: served.map(record), ...more });
  },
});

export const retrieveModel = operation({
  operationId: "retrieveModel",
  method: "get",
  path: "/v1/models/{id}",
  tag: "Models",
  summary: "Retrieve a model",
  description: "One model, with its limits, capabilities and prices.",
  scope: "models:read",
  params: Type.Object({
    id: Type.String({
      description: "The model's id. You can encode its slash as `%2F`.",
      minLength: 1,
      example: anyModel,
    }),
  }),
  headers,
  success: jsonSuccess("The model.", { schema: Type.Union([ModelDetails, MessagesModel]) }, retirementHeaderNames),
  faults: ["model_not_found"],
  otherFaults: true,
  faultShape: "client",
  examples: [
    getExample("encoded", "The id with its slash encoded", encodedPath),
    getExample("raw", "The plain id", (id) => `/v1/models/${id}`),
    getExample("for_messages_clients", "In the form of Messages", encodedPath, forMessagesClients),
  ],
  handle(dependencies, call, { params, headers }) {
    const name = decoded(params.id);
    const catalog = dependencies.catalog();
    call.announces(retirementHeadersOf(catalog, name));
    const served = { name, model: answeringModel(catalog, name, Date.now()) };
    return json(200, forMessages(headers) ? messagesRecord(served) : details(served, dependencies.currency));
  },
});

function isOfChat({ kind = "chat" }: ServedName["model"]): boolean {
  return kind === "chat";
}

function forMessages(headers: { "anthropic-version"?: string }): boolean {
  return headers["anthropic-version"] !== undefined;
}

/** The decoded id. An id that cannot be decoded is returned unchanged, and names no model. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

function record({ name, model }: ServedName) {
  return { id: name, object: "model", created: model.created, owned_by: model.ownedBy };
}

function details({ name, model }: ServedName, currency: Currency) {
  const { aliases = [], retirement } = model;
  return {
    ...record({ name, model }),
    kind: model.kind ?? "chat",
    context_window: model.contextTokens,
    max_output_tokens: model.outputTokens_max,
    capabilities: [...model.capabilities],
    prices: pricesShown(model.prices, currency),
    ...(aliases.length > 0 ? { canonical_id: model.id, aliases } : {}),
    ...(retirement ? retirementFields(retirement) : {}),
  };
}

function retirementFields({ at_ms, deprecatedAt_ms, replacedBy }: Retirement) {
  return {
    deprecated_at: new Date(deprecatedAt_ms).toISOString(),
    retires_at: new Date(at_ms).toISOString(),
    replaced_by: replacedBy ?? null,
  };
}

function messagesRecord({ name, model }: ServedName) {
  return {
    type: "model",
    id: name,
    display_name: name,
    created_at: new Date(model.created * 1000).toISOString(),
    max_input_tokens: model.contextTokens,
    max_tokens: model.outputTokens_max,
  };
}

interface Paging {
  limit?: string;
  after_id?: string;
  before_id?: string;
}

function messagesList(served: ServedName[], paging: Paging) {
  const { page, hasMore } = pageOf(served, paging);
  return {
    data: page.map(messagesRecord),
    has_more: hasMore,
    first_id: page[0]?.name ?? null,
    last_id: page.at(-1)?.name ?? null,
  };
}

/**
 * One page of models. Without `limit` the page has all models: with the protocol's default of 20, clients that don't
 * page would miss the others.
 */
function pageOf(
  served: ServedName[],
  { limit, after_id, before_id }: Paging,
): { page: ServedName[]; hasMore: boolean } {
  if (after_id !== undefined && before_id !== undefined)
    throw new Fault("mutually_exclusive", "'after_id' and 'before_id' cannot be combined. Send one of them.", {
      param: "after_id",
    });
  const count = limit === undefined ? served.length : Number(limit);
  if (limit !== undefined && !(/^[1-9]\d{0,3}$/.test(limit) && count <= page_max))
    throw wrongParameter("limit", `a whole number from 1 to ${page_max}`);
  if (before_id !== undefined) {
    const end = placeOf(served, "before_id", before_id);
    return { page: served.slice(Math.max(0, end - count), end), hasMore: end > count };
  }
  const start = after_id === undefined ? 0 : placeOf(served, "after_id", after_id) + 1;
  return { page: served.slice(start, start + count), hasMore: start + count < served.length };
}

function placeOf(served: ServedName[], param: string, id: string): number {
  const place = served.findIndex(({ name }) => name === id);
  if (place < 0) throw wrongParameter(param, "the id of a model in the list");
  return place;
}

/** The prices of a million tokens, and of a thousand searches. */
export function pricesShown({ input, cachedInput, cacheWrite, output, search }: Prices, currency: Currency) {
  return {
    input: priceOfMillion(input, currency),
    cached_input: priceOfMillion(cachedInput, currency),
    cache_write: priceOfMillion(cacheWrite, currency),
    output: priceOfMillion(output, currency),
    ...(search !== undefined && { search: priceOfMillion(search / 1000, currency) }),
  };
}
