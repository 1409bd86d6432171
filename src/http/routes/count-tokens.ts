/** POST /v1/messages/count_tokens: any valid key; no usage, no window, no limit. */
import { decodeRequest } from "../../protocol/anthropic-messages/decode-request.ts";
import { encodeFault } from "../../protocol/anthropic-messages/fault.ts";
import { validateCountTokens } from "../../protocol/anthropic-messages/validate.ts";
import { allowedModel } from "../../routing/catalog.ts";
import { caller } from "../admitted.ts";
import { readJson } from "../body.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";

export function countTokensRoute(house: House): Route {
  return {
    path: "/v1/messages/count_tokens",
    methods: {
      async POST(call) {
        const principal = await caller(house, call);
        const body = await readJson(call.request, house.limits);
        const request = decodeRequest(validateCountTokens(body.value), house.messages());
        const model = allowedModel(house.catalog(), request.model, principal.key.allowedModels);
        call.notes.model = model.id;
        return json(200, { input_tokens: house.inputEstimate.tokens(model, request, body.bytes) });
      },
    },
    faultBody: encodeFault,
  };
}
