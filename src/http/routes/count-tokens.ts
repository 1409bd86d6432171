/** POST /v1/messages/count_tokens: any valid key; no usage, no window, no limit. The body is looked into by a worker. */
import { encodeFault } from "../../protocol/anthropic-messages/fault.ts";
import { allowedModel, type Catalog } from "../../routing/catalog.ts";
import { caller } from "../admitted.ts";
import { readJsonBytes } from "../body.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";

export function countTokensRoute(house: House): Route {
  return {
    path: "/v1/messages/count_tokens",
    methods: {
      async POST(call) {
        call.keepOpen();
        const principal = await caller(house, call);
        const body = await readJsonBytes(call.request, house.limits);
        const catalog = house.catalog();
        const { body_depth_max } = house.limits;
        const asked = { body, body_depth_max, options: house.messages(), tokenizers: tokenizersOf(catalog) };
        const found = await house.tokenCounter.examine(asked);
        const model = allowedModel(catalog, found.model, principal.key.allowedModels);
        call.notes.model = model.id;
        const { media, textTokens } = found;
        const counted = textTokens === null ? null : textTokens + media.tokens;
        return json(200, { input_tokens: counted ?? house.inputEstimate.expected(model, media, body.byteLength) });
      },
    },
    faultBody: encodeFault,
  };
}

function tokenizersOf({ models }: Catalog): Record<string, string> {
  const named: Record<string, string> = {};
  for (const { id, tokenizer } of models.values()) if (tokenizer !== undefined) named[id] = tokenizer;
  return named;
}
