import { Fault } from "../inference/fault.ts";
import { openaiResponsesCaller } from "../protocol/openai-responses/codec.ts";
import { ResponseObject, ResponsesRequest, ResponsesStreamEvent } from "../protocol/openai-responses/contract.ts";
import { begunResponse } from "../protocol/openai-responses/response-object.ts";
import { responsesRepeats, validateResponsesRequest } from "../protocol/openai-responses/validate.ts";
import type { Adapter } from "./adapter.ts";
import type { Dependencies } from "./dependencies.ts";
import { inferenceHeaderNames, limitHeaderNames, responsesLimitRefusalHeaderNames } from "./headers.ts";
import { keyHeaders } from "./idempotency.ts";
import { infer } from "./infer.ts";
import { jsonType, operation } from "./operation.ts";
import { inferenceBody } from "./prepare.ts";
import type { StoredResponses } from "./stored.ts";

export const path = "/v1/responses";
const metered = "responses";

export function responsesAdapter({ stored }: Pick<Dependencies, "stored">): Adapter<ResponsesRequest, ResponseObject> {
  return {
    operation: metered,
    idPrefix: "resp_",
    codec: openaiResponsesCaller,
    resolve: (wire, caller) => stored.resolve(wire, caller),
    background: { isAsked: (wire) => asksForBackground(stored, wire), begun: begunResponse },
    saver: (wire, maker) => stored.saver(wire, maker),
  };
}

function asksForBackground(stored: StoredResponses, { background, store }: ResponsesRequest) {
  if (!background) return false;
  if (store !== false && stored.isOn()) return true;
  const why = store === false ? "this request has 'store': false" : "this service stores no responses";
  throw new Fault("unsupported_feature", `'background' needs a stored response, and ${why}.`, { param: "background" });
}

export const createResponse = operation({
  operationId: "createResponse",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a response",
  description:
    "Chat completions in the Responses protocol, with the same models, scopes, limits and prices. A request that needs what the model lacks is refused; nothing is dropped silently. Two exceptions: a hint (`reasoning`) is not sent to a model that lacks it, and hosted tools that are only listed are left out. Unless `store` is false, in the request or in the service's settings, the response is stored for some days: you can fetch it, and continue from it with `previous_response_id`. Without `max_output_tokens`, the model's own limit applies.",
  scope: "inference:create",
  metered,
  headers: keyHeaders,
  request: inferenceBody(ResponsesRequest, {
    validate: (body, _, unchecked) => validateResponsesRequest(body, unchecked),
    repeated: responsesRepeats,
  }),
  success: {
    description: "The response, or a stream of its events when `stream` is true.",
    headers: [...inferenceHeaderNames, ...limitHeaderNames],
    content: {
      [jsonType]: { schema: ResponseObject },
      "text/event-stream": {
        schema: ResponsesStreamEvent,
        grammar: "responses",
        description:
          "Each event has an `event:` line with its type and a `data:` line that holds it (`ResponsesStreamEvent`): `response.created`, `response.in_progress`, then the items, one at a time, each from `response.output_item.added` to `response.output_item.done`, then one of `response.completed`, `response.incomplete` and `response.failed` with the whole response. `response.in_progress` is repeated while the model is silent. An error during the stream is `response.failed`. The stream ends with exactly one `data: [DONE]`, which has no `event:` line.",
      },
    },
  },
  faults: ["model_not_allowed"],
  otherFaults: true,
  limitRefusalHeaders: responsesLimitRefusalHeaderNames,
  faultShape: "responses",
  faultHeaders: limitMessageHeaders,
  handle: (dependencies, call, input) => infer(dependencies, call, input, responsesAdapter(dependencies)),
});

/**
 * The header from which Codex takes its text for a usage limit, to which it adds `, or try again later.`. Codex reads a
 * header only if it is ASCII: letters lose their accents, currency signs other than `$` are left out, and each other
 * character becomes a question mark.
 */
function limitMessageHeaders({ code, message }: Fault): Record<string, string> {
  if (code !== "usage_limit_reached") return {};
  const ascii = message
    .normalize("NFKD")
    .replace(/\p{M}|(?!\$)\p{Sc}/gu, "")
    .replace(/[^\x20-\x7e]/gu, "?");
  return { "x-codex-promo-message": ascii.replace(/\.$/, "") };
}
