/** The operations that count the tokens of an input, with any valid key. A worker parses the body, checks it and counts. */
import type { TSchema } from "typebox";
import type { Principal } from "../auth/verdict.ts";
import { blanksOf, readJsonBytes } from "../body/read.ts";
import { reserve, takesTurns } from "../http/bounds.ts";
import type { Call } from "../http/call.ts";
import { json } from "../http/json.ts";
import { CountTokensRequest, TokenEstimate } from "../protocol/anthropic-messages/contract.ts";
import { InputTokens, InputTokensRequest } from "../protocol/openai-responses/contract.ts";
import { allowedModel, answeringModelOrNull, type Catalog, retirementHeadersOf } from "../routing/catalog.ts";
import type { Dependencies } from "./dependencies.ts";
import { retirementHeaderNames } from "./headers.ts";
import { path as messagesPath } from "./messages.ts";
import { jsonSuccess, operation, type RequestBody } from "./operation.ts";
import { path as responsesPath } from "./responses.ts";
import type { ExamineRequest } from "./token-counter.ts";

const countTerms =
  "It costs nothing, opens no usage window, and is not held to the limits of the plan. A key can send ten times the requests per minute of its plan, and at least 1,200.";

export const countTokens = operation({
  operationId: "countTokens",
  method: "post",
  path: `${messagesPath}/count_tokens`,
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

export const countInputTokens = operation({
  operationId: "countInputTokens",
  method: "post",
  path: `${responsesPath}/input_tokens`,
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

/** A body that a worker parses and checks. */
function countedBody(schema: TSchema): RequestBody<Uint8Array> {
  return {
    schema,
    read(dependencies, call) {
      const hold = (held: number) => reserve(dependencies, call, held);
      return readJsonBytes(call.request, dependencies.limits, hold, takesTurns(dependencies, call));
    },
  };
}

/** The input tokens of the request in `body`, counted with the stored items to which it refers. Throws Faults. */
async function countedTokens(
  dependencies: Dependencies,
  call: Call,
  { principal, body }: { principal: Principal; body: Uint8Array },
  request: Pick<ExamineRequest, "of" | "options">,
): Promise<number> {
  const catalog = dependencies.catalog();
  const now_ms = Date.now();
  const organization = principal.organization.id;
  const question = { ...request, organization, tokenizers: tokenizersOf(catalog, now_ms) };
  let bytes = body.byteLength - blanksOf(body);
  let examined = await dependencies.tokenCounter.examine({ ...question, body });
  call.announces(retirementHeadersOf(catalog, examined.model));
  const model = allowedModel(catalog, examined.model, principal.key, now_ms);
  call.requested({ model: model.id });
  if (examined.refers) {
    const { references, body } = examined.refers;
    const { found, bytes: more } = await dependencies.stored.find(references, principal);
    bytes += more;
    examined = await dependencies.tokenCounter.examine({ ...question, body, found });
  }
  const { media, textTokens } = examined;
  return textTokens === null ? dependencies.inputEstimate.expected(model, media, bytes) : textTokens + media.tokens;
}

/** The tokenizer for each id and alias of a model; models without a tokenizer are left out. */
function tokenizersOf(catalog: Catalog, now_ms: number): Record<string, string> {
  const tokenizers: Record<string, string> = {};
  for (const name of [...catalog.models.keys(), ...(catalog.aliases?.keys() ?? [])]) {
    const tokenizer = answeringModelOrNull(catalog, name, now_ms)?.tokenizer;
    if (tokenizer !== undefined) tokenizers[name] = tokenizer;
  }
  return tokenizers;
}
