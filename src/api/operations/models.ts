/** GET /v1/models and /v1/models/{id}; with an `anthropic-version` header in the shapes of the Messages world. */
import Type from "typebox";
import { json } from "../../http/json.ts";
import { Fault } from "../../inference/fault.ts";
import type { Model } from "../../inference/model.ts";
import { codexModels } from "../codex-models.ts";
import type { Dependencies } from "../dependencies.ts";
import { credentialFaults } from "../openapi/faults.ts";
import { anyModel, operation } from "../operation.ts";
import { MessagesModel, MessagesModelList, ModelDetails, ModelList } from "../shapes.ts";
import { jsonType } from "./examples.ts";

const headers = Type.Object({
  "anthropic-version": Type.Optional(
    Type.String({
      description:
        "If present, with any value, the response and its errors have the form that Messages clients expect.",
    }),
  ),
});
const messagesHeaders = { "anthropic-version": "2023-06-01" };

export const listModels = operation({
  operationId: "listModels",
  method: "get",
  path: "/v1/models",
  tag: "Models",
  summary: "List the models",
  description: "Every active model.",
  scope: "models:read",
  query: Type.Object({
    client_version: Type.Optional(
      Type.String({ description: "If present, with any value, `models` has the list that Codex expects." }),
    ),
  }),
  headers,
  success: {
    description: "The models.",
    headers: [],
    content: {
      [jsonType]: {
        schema: Type.Union([ModelList, MessagesModelList]),
        example: {
          object: "list",
          data: [{ id: "vendor/model", object: "model", created: 1790000000, owned_by: "vendor" }],
        },
      },
    },
  },
  faults: [...credentialFaults],
  otherFaults: true,
  faultShape: "client",
  examples: [
    {
      name: "list",
      summary: "All models",
      needs: [],
      request: () => ({ path: "/v1/models" }),
      status: 200,
      contentType: jsonType,
    },
    {
      name: "list_for_codex",
      summary: "All models, with the list that Codex expects",
      needs: [],
      request: () => ({ path: "/v1/models?client_version=0.169.0" }),
      status: 200,
      contentType: jsonType,
    },
    {
      name: "list_for_messages_clients",
      summary: "All models, in the form of Messages",
      needs: [],
      request: () => ({ path: "/v1/models", headers: messagesHeaders }),
      status: 200,
      contentType: jsonType,
    },
  ],
  handle(dependencies, _call, { headers, query, principal: { key } }) {
    const models = modelsOf(dependencies);
    if (forMessages(headers)) return json(200, messagesList(models));
    const usable = models.filter(({ id }) => key.allowedModels?.includes(id) ?? true);
    const more = query.client_version === undefined ? {} : { models: codexModels(usable) };
    return json(200, { object: "list", data: models.map(record), ...more });
  },
});

export const retrieveModel = operation({
  operationId: "retrieveModel",
  method: "get",
  path: "/v1/models/{id}",
  tag: "Models",
  summary: "Retrieve a model",
  description: "One model, with its limits, capabilities and unit prices.",
  scope: "models:read",
  params: Type.Object({
    id: Type.String({
      description: "The model's id. You can encode its slash as `%2F`.",
      minLength: 1,
      example: anyModel,
    }),
  }),
  headers,
  success: {
    description: "The model.",
    headers: [],
    content: { [jsonType]: { schema: Type.Union([ModelDetails, MessagesModel]) } },
  },
  faults: [...credentialFaults, "model_not_found"],
  otherFaults: true,
  faultShape: "client",
  examples: [
    {
      name: "encoded",
      summary: "The id with its slash encoded",
      needs: [],
      request: (id) => ({ path: `/v1/models/${encodeURIComponent(id)}` }),
      status: 200,
      contentType: jsonType,
    },
    {
      name: "raw",
      summary: "The plain id",
      needs: [],
      request: (id) => ({ path: `/v1/models/${id}` }),
      status: 200,
      contentType: jsonType,
    },
    {
      name: "for_messages_clients",
      summary: "In the form of Messages",
      needs: [],
      request: (id) => ({ path: `/v1/models/${encodeURIComponent(id)}`, headers: messagesHeaders }),
      status: 200,
      contentType: jsonType,
    },
  ],
  handle(dependencies, _call, { params, headers }) {
    const id = decoded(params.id);
    const model = modelsOf(dependencies).find((candidate) => candidate.id === id);
    if (!model) {
      throw new Fault("model_not_found", "This model does not exist. GET /v1/models lists the models that do.", {
        param: "model",
      });
    }
    return json(200, forMessages(headers) ? messagesRecord(model) : details(model));
  },
});

function forMessages(headers: { "anthropic-version"?: string }): boolean {
  return headers["anthropic-version"] !== undefined;
}

function modelsOf(dependencies: Dependencies): Model[] {
  return [...dependencies.catalog().models.values()];
}

/** The decoded id; null if it cannot be decoded, because then it names no model. */
function decoded(id: string): string | null {
  try {
    return decodeURIComponent(id);
  } catch {
    return null;
  }
}

function record(model: Model) {
  return { id: model.id, object: "model", created: model.created, owned_by: model.ownedBy };
}

function details(model: Model) {
  const { input, cachedInput, cacheWrite, output } = model.prices;
  return {
    ...record(model),
    context_window: model.contextTokens,
    max_output_tokens: model.outputTokens_max,
    capabilities: [...model.capabilities],
    prices: { input, cached_input: cachedInput, cache_write: cacheWrite, output },
  };
}

function messagesRecord(model: Model) {
  return {
    type: "model",
    id: model.id,
    display_name: model.id,
    created_at: new Date(model.created * 1000).toISOString(),
    max_input_tokens: model.contextTokens,
    max_tokens: model.outputTokens_max,
  };
}

/** One page holds everything, so the protocol's `limit` and cursors have no effect. */
function messagesList(models: Model[]) {
  return {
    data: models.map(messagesRecord),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}
