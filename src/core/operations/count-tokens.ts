/** POST /v1/messages/count_tokens, with any valid key. It costs nothing, and the plan's limits do not apply. */
import { json } from "../http/json.ts";
import { CountTokensRequest, TokenEstimate } from "../protocol/anthropic-messages/contract.ts";
import { retirementHeaderNames } from "./headers.ts";
import { path } from "./messages.ts";
import { jsonSuccess, operation } from "./operation.ts";
import { countedBody, countedTokens, countTerms } from "./token-count.ts";

export const countTokens = operation({
  operationId: "countTokens",
  method: "post",
  path: `${path}/count_tokens`,
  tag: "Inference",
  summary: "Count the tokens of a message",
  description: `How many input tokens a message would have. The count uses the model's own tokenizer and chat template if the service has them; otherwise it is an estimate from what the engine reported for other requests. ${countTerms}`,
  scope: "any",
  request: countedBody(CountTokensRequest),
  success: jsonSuccess("The count.", { schema: TokenEstimate, example: { input_tokens: 19 } }, retirementHeaderNames),
  faults: ["model_not_allowed"],
  otherFaults: true,
  faultShape: "messages",
  handle: async (dependencies, call, input) => {
    const request = { of: "messages" as const, options: dependencies.messages() };
    return json(200, { input_tokens: await countedTokens(dependencies, call, input, request) });
  },
});
