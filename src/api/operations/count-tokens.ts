/**
 * POST /v1/messages/count_tokens: any valid key; no usage, no window, and none of the plan's limits. A worker reads the
 * body.
 */

import { json } from "../../http/json.ts";
import { CountTokensRequest, TokenEstimate } from "../../protocol/anthropic-messages/contract.ts";
import { allowedModel, retirementHeadersOf } from "../../routing/model-names.ts";
import { retirementHeaderNames } from "../openapi/headers.ts";
import { operation } from "../operation.ts";
import { countedBody, inputTokensOf, tokenizersOf } from "../token-count.ts";
import { jsonType } from "./examples.ts";
import { countRequests } from "./messages-examples.ts";

export const countTokens = operation({
  operationId: "countTokens",
  method: "post",
  path: "/v1/messages/count_tokens",
  tag: "Inference",
  summary: "Count the tokens of a message",
  description:
    "How many input tokens a message would have. The count uses the model's own tokenizer and chat template if the service has them; otherwise it is an estimate from what the engine reported for other requests. It costs nothing, opens no usage window, and is not held to the limits of the plan. A key can send ten times the requests per minute of its plan, and at least 1,200.",
  scope: "any",
  request: countedBody(CountTokensRequest),
  success: {
    description: "The count.",
    headers: retirementHeaderNames,
    content: { [jsonType]: { schema: TokenEstimate, example: { input_tokens: 19 } } },
  },
  faults: ["model_not_allowed"],
  otherFaults: true,
  faultShape: "messages",
  examples: countRequests,
  async handle(dependencies, call, { principal, body }) {
    const catalog = dependencies.catalog();
    const now_ms = Date.now();
    const bytes = body.byteLength;
    const asked = {
      body,
      of: "messages" as const,
      options: dependencies.messages(),
      tokenizers: tokenizersOf(catalog, now_ms),
    };
    const found = await dependencies.tokenCounter.examine(asked);
    call.announces(retirementHeadersOf(catalog, found.model));
    const model = allowedModel(catalog, found.model, principal.key.allowedModels, now_ms);
    call.requested({ model: model.id });
    return json(200, { input_tokens: inputTokensOf(dependencies, model, found, bytes) });
  },
});
