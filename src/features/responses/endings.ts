/** How each protocol ends a stream whose encoder is gone, such as that of a node that stopped. */
import type { Fault } from "../../core/inference/fault.ts";
import type { Adapter, InferenceWire } from "../../core/operations/adapter.ts";
import { failure as messagesFailure } from "../../core/protocol/anthropic-messages/encode-stream.ts";
import type { ResponseIdentity } from "../../core/protocol/codec.ts";
import { failure as chatFailure } from "../../core/protocol/openai-chat/encode-response.ts";
import type { ResponsesRequest } from "../../core/protocol/openai-responses/contract.ts";
import { begunResponse } from "../../core/protocol/openai-responses/response-object.ts";
import { encodeSse, type SseMessage } from "../../core/sse/decode.ts";
import type { StreamEnding } from "./needs.ts";
import { WrittenStream } from "./written-stream.ts";

/** The end of a stream of this operation. `identity`: that of the answer. */
export function endingOf(
  { operation }: Pick<Adapter<InferenceWire, unknown>, "operation">,
  wire: InferenceWire,
  identity: ResponseIdentity,
): StreamEnding {
  if (operation === "responses") return new WrittenStream(begunResponse(wire as ResponsesRequest, identity));
  return endsBy(operation === "messages" ? messagesFailure : chatFailure);
}

/** Ends a stream in a protocol in which the frames of a failure do not depend on what was written before. */
function endsBy(failure: (fault: Fault, requestId: string) => SseMessage[]): StreamEnding {
  return { saw() {}, end: (fault, requestId) => failure(fault, requestId).map(encodeSse).join("") };
}
