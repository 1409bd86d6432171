/** POST /v1/messages, the protocol of Anthropic. */

import { anthropicMessagesCaller } from "../protocol/anthropic-messages/codec.ts";
import { Message, MessageStreamEvent, MessagesRequest } from "../protocol/anthropic-messages/contract.ts";
import { messagesRepeats, validateMessagesRequest } from "../protocol/anthropic-messages/validate.ts";
import type { Adapter } from "./adapter.ts";
import type { Dependencies } from "./dependencies.ts";
import { inferenceHeaderNames, messagesLimitHeaderNames, messagesLimitRefusalHeaderNames } from "./headers.ts";
import { keyHeaders } from "./idempotency.ts";
import { infer } from "./infer.ts";
import { jsonType, operation } from "./operation.ts";
import { inferenceBody } from "./prepare.ts";

export const path = "/v1/messages";
const metered = "messages";

export function messagesAdapter(dependencies: Pick<Dependencies, "messages">): Adapter<MessagesRequest, Message> {
  return { operation: metered, idPrefix: "msg_", codec: anthropicMessagesCaller(dependencies.messages()) };
}

export const createMessage = operation({
  operationId: "createMessage",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a message",
  description:
    "Chat completions in the Messages protocol, with the same models, scopes, limits and prices. A request that needs what the model lacks is refused; nothing is dropped silently, except hints (`thinking`, `output_config.effort`). Every `anthropic-version` and `anthropic-beta` is accepted; engines of the dialect `anthropic` get the latter.",
  scope: "inference:create",
  metered,
  headers: keyHeaders,
  request: inferenceBody(MessagesRequest, {
    validate: (body, _, unchecked, bounds) => validateMessagesRequest(body, unchecked, bounds),
    repeated: messagesRepeats,
  }),
  success: {
    description: "The message, or a stream of its events when `stream` is true.",
    headers: [...inferenceHeaderNames, ...messagesLimitHeaderNames],
    content: {
      [jsonType]: { schema: Message },
      "text/event-stream": {
        schema: MessageStreamEvent,
        grammar: "messages",
        description:
          "Each event has an `event:` line with its type and a `data:` line that holds it (`MessageStreamEvent`): `message_start`, then blocks one after the other, each from `content_block_start` to `content_block_stop`, then `message_delta` with the totals and `message_stop`. `ping` can appear anywhere in between. An error during the stream is an `error` event, which ends it.",
      },
    },
  },
  faults: ["model_not_allowed"],
  otherFaults: true,
  limitRefusalHeaders: messagesLimitRefusalHeaderNames,
  faultShape: "messages",
  handle: (dependencies, call, input) => infer(dependencies, call, input, messagesAdapter(dependencies)),
});
