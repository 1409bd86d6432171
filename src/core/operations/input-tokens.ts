/** POST /v1/responses/input_tokens, with any valid key. It costs nothing, and the plan's limits do not apply. */
import { json } from "../http/json.ts";
import { InputTokens, InputTokensRequest } from "../protocol/openai-responses/contract.ts";
import { retirementHeaderNames } from "./headers.ts";
import { jsonSuccess, operation } from "./operation.ts";
import { path } from "./responses.ts";
import { countedBody, countedTokens, countTerms } from "./token-count.ts";

export const countInputTokens = operation({
  operationId: "countInputTokens",
  method: "post",
  path: `${path}/input_tokens`,
  tag: "Inference",
  summary: "Count the tokens of a response's input",
  description: `How many input tokens a response would have, counted or estimated as \`/v1/messages/count_tokens\` does. ${countTerms}`,
  scope: "any",
  request: countedBody(InputTokensRequest),
  success: jsonSuccess(
    "The count.",
    { schema: InputTokens, example: { object: "response.input_tokens", input_tokens: 19 } },
    retirementHeaderNames,
  ),
  faults: ["model_not_allowed"],
  otherFaults: true,
  faultShape: "responses",
  handle: async (dependencies, call, input) => {
    const input_tokens = await countedTokens(dependencies, call, input, { of: "responses", options: {} });
    return json(200, { object: "response.input_tokens", input_tokens });
  },
});
