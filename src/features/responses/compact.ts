/** POST /v1/responses/compact: lets the model summarize a conversation. It is metered like any inference. */

import type { Adapter } from "../../core/operations/adapter.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { limitHeaderNames, limitRefusalHeaderNames, usageHeaderNames } from "../../core/operations/headers.ts";
import { refuseKey } from "../../core/operations/idempotency.ts";
import { infer } from "../../core/operations/infer.ts";
import { jsonSuccess, operation } from "../../core/operations/operation.ts";
import { inferenceBody } from "../../core/operations/prepare.ts";
import { path } from "../../core/operations/responses.ts";
import { CompactRequest, type ResponsesRequest } from "../../core/protocol/openai-responses/contract.ts";
import { validateCompactRequest } from "../../core/protocol/openai-responses/validate.ts";
import { openaiCompactCaller } from "./compacted.ts";
import { CompactedResponse } from "./contract.ts";

const metered = "responses";

function compactAdapter({ stored }: Pick<Dependencies, "stored">): Adapter<ResponsesRequest, CompactedResponse> {
  return {
    operation: metered,
    idPrefix: "resp_",
    codec: openaiCompactCaller,
    resolve: (wire, caller) => stored.resolve(wire, caller),
  };
}

export const compactResponse = operation({
  operationId: "compactResponse",
  method: "post",
  path: `${path}/compact`,
  tag: "Inference",
  summary: "Compact a conversation",
  description:
    'Has the model write a summary of the conversation from which it can go on, and answers it as one item `compaction`, behind the newest messages of the user. It is metered like any response, and not stored. If the conversation does not fit into the model\'s context, its oldest messages are left out, and the summary says so. A streamed compaction is `POST /v1/responses` with `{"type": "compaction_trigger"}` as the last item.',
  scope: "inference:create",
  metered,
  request: inferenceBody(CompactRequest, { validate: validateCompactRequest }),
  success: jsonSuccess("What to go on from.", { schema: CompactedResponse }, [
    ...usageHeaderNames,
    "x-service-usage-source",
    ...limitHeaderNames,
  ]),
  faults: ["model_not_allowed"],
  otherFaults: true,
  limitRefusalHeaders: limitRefusalHeaderNames,
  faultShape: "responses",
  handle(dependencies, call, input) {
    refuseKey(call, "compactions");
    return infer(dependencies, call, input, compactAdapter(dependencies));
  },
});
