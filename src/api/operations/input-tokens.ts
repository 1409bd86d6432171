/** POST /v1/responses/input_tokens: any valid key; no usage, no window, none of the plan's limits. A worker looks into the body. */

import { json } from "../../http/json.ts";
import { InputTokens, InputTokensRequest } from "../../protocol/openai-responses/contract.ts";
import { allowedModel, retirementHeadersOf } from "../../routing/model-names.ts";
import { retirementHeaderNames } from "../openapi/headers.ts";
import { operation } from "../operation.ts";
import { findReferences } from "../stored-responses.ts";
import { countedBody, inputTokensOf, tokenizersOf } from "../token-count.ts";
import { jsonType } from "./examples.ts";
import { countRequests, path } from "./responses-examples.ts";

export const countInputTokens = operation({
  operationId: "countInputTokens",
  method: "post",
  path: `${path}/input_tokens`,
  tag: "Inference",
  summary: "Count the tokens of a response's input",
  description:
    "How many input tokens a response would have, counted or estimated as `/v1/messages/count_tokens` does. It costs nothing, opens no usage window, and is not held to the limits of the plan. A key can send ten times the requests per minute of its plan, and at least 1,200.",
  scope: "any",
  request: countedBody(InputTokensRequest),
  success: {
    description: "The count.",
    headers: retirementHeaderNames,
    content: {
      [jsonType]: { schema: InputTokens, example: { object: "response.input_tokens", input_tokens: 19 } },
    },
  },
  faults: ["model_not_allowed"],
  otherFaults: true,
  faultShape: "responses",
  examples: countRequests,
  async handle(dependencies, call, { principal, body }) {
    const catalog = dependencies.catalog();
    const now_ms = Date.now();
    const { tokenCounter } = dependencies;
    const asked = { of: "responses" as const, options: {}, tokenizers: tokenizersOf(catalog, now_ms) };
    let bytes = body.byteLength;
    let examined = await tokenCounter.examine({ ...asked, body });
    call.announces(retirementHeadersOf(catalog, examined.model));
    const model = allowedModel(catalog, examined.model, principal.key.allowedModels, now_ms);
    call.requested({ model: model.id });
    if (examined.refers) {
      const { references, body } = examined.refers;
      const { found, bytes: more } = await findReferences(dependencies, references, principal.organization);
      bytes += more;
      examined = await tokenCounter.examine({ ...asked, body, found });
    }
    const input_tokens = inputTokensOf(dependencies, model, examined, bytes);
    return json(200, { object: "response.input_tokens", input_tokens });
  },
});
