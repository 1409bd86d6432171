/** GET /v1/models and /v1/models/{id}; with an `anthropic-version` header in the shapes of the Messages world. */
import { Fault } from "../../inference/fault.ts";
import type { Model } from "../../inference/model.ts";
import { admitted } from "../admitted.ts";
import type { Call } from "../call.ts";
import { type Route, routeNotFound } from "../door.ts";
import { faultBodyForClient, isMessagesClient } from "../fault-body.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";

export function modelRoutes(house: House): Route[] {
  const reader = async (call: Call) => {
    await admitted(house, call, "models:read");
    return [...house.catalog().models.values()];
  };
  const list: Route = {
    path: "/v1/models",
    methods: {
      async GET(call) {
        const models = await reader(call);
        return json(
          200,
          isMessagesClient(call.request) ? messagesList(models) : { object: "list", data: models.map(record) },
        );
      },
    },
    faultBody: faultBodyForClient,
  };
  const one: Route = {
    path: "/v1/models/{id}",
    methods: {
      async GET(call) {
        const models = await reader(call);
        const id = idOf(call.request);
        if (id === "") throw routeNotFound();
        const model = models.find((candidate) => candidate.id === id);
        if (!model) {
          throw new Fault("model_not_found", "This model does not exist. GET /v1/models lists the models that do.", {
            param: "model",
          });
        }
        return json(200, isMessagesClient(call.request) ? messagesRecord(model) : details(model));
      },
    },
    faultBody: faultBodyForClient,
  };
  return [list, one];
}

/** Ids hold a slash, raw or encoded; what cannot be decoded names no model. */
function idOf(request: Request): string | null {
  const path = new URL(request.url).pathname.slice("/v1/models/".length);
  try {
    return decodeURIComponent(path);
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
    max_output_tokens: model.outputTokensMax,
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
  };
}

/** One page holds everything: `limit` and the cursors of that world have nothing to do here. */
function messagesList(models: Model[]) {
  return {
    data: models.map(messagesRecord),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}
