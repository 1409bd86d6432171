/** POST /v1/responses/compact: lets the model summarize a conversation. It is metered like any inference. */

import type { Result } from "../../core/inference/result.ts";
import type { Adapter } from "../../core/operations/adapter.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { limitHeaderNames, limitRefusalHeaderNames, usageHeaderNames } from "../../core/operations/headers.ts";
import { refuseKey } from "../../core/operations/idempotency.ts";
import { infer } from "../../core/operations/infer.ts";
import { jsonSuccess, operation } from "../../core/operations/operation.ts";
import { inferenceBody } from "../../core/operations/prepare.ts";
import { path } from "../../core/operations/responses.ts";
import type { CallerCodec } from "../../core/protocol/codec.ts";
import { openaiResponsesCaller } from "../../core/protocol/openai-responses/codec.ts";
import {
  CompactRequest,
  type InputItem,
  type MessageItem,
  type ResponsesRequest,
} from "../../core/protocol/openai-responses/contract.ts";
import { compactionItem } from "../../core/protocol/openai-responses/encode-response.ts";
import { conversationOf, itemIdOf, withInput } from "../../core/protocol/openai-responses/references.ts";
import { encodeUsage } from "../../core/protocol/openai-responses/usage.ts";
import { validateCompactRequest } from "../../core/protocol/openai-responses/validate.ts";
import { CompactedResponse, type RetainedMessage } from "./contract.ts";

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

// ---- the codec -------------------------------------------------------------------------------------------------------

/** The codec of compactions. An answer is never streamed: it has the newest messages, unchanged, and a summary. */
export const openaiCompactCaller: CallerCodec<ResponsesRequest, CompactedResponse> = {
  ...openaiResponsesCaller,
  request: { ...openaiResponsesCaller.request, remainder: compactRemainder },
  response: { encode: encodeCompacted },
};

function encodeCompacted(result: Result, { input }: ResponsesRequest): CompactedResponse {
  const { responseId, createdAtSeconds, usage } = result;
  const retained = (typeof input === "string" ? [] : input).filter(isUsers);
  const messages = retained.map(({ content }, at): RetainedMessage => {
    const parts = typeof content === "string" ? [{ type: "input_text" as const, text: content }] : content;
    const id = itemIdOf(responseId, "message", at);
    return { id, type: "message", status: "completed", role: "user", content: [...parts] };
  });
  return {
    id: responseId,
    object: "response.compaction",
    created_at: createdAtSeconds,
    output: [...messages, compactionItem(result, messages.length)],
    usage: encodeUsage(usage),
  };
}

/** The most characters of retained messages, so that they leave room in the smallest contexts. */
const retained_chars_max = 32_768;

/** The answer is written from the user's newest messages, and the item that asks for the compaction. */
function compactRemainder(wire: ResponsesRequest): ResponsesRequest {
  const retained: InputItem[] = [{ type: "compaction_trigger" }];
  let chars = 0;
  for (const { item } of conversationOf(wire).reverse()) {
    if (!isUsers(item)) continue;
    chars += JSON.stringify(item.content).length;
    if (chars > retained_chars_max) break;
    retained.unshift(item);
  }
  return withInput(wire, retained);
}

function isUsers(item: InputItem): item is MessageItem {
  return item.type === "message" && item.role === "user";
}
