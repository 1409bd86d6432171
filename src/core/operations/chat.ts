/** POST /v1/chat/completions. */

import { openaiChatCaller } from "../protocol/openai-chat/codec.ts";
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from "../protocol/openai-chat/contract.ts";
import { chatRepeats, validateChatRequest } from "../protocol/openai-chat/validate.ts";
import type { Adapter } from "./adapter.ts";
import { inferenceHeaderNames, limitHeaderNames, limitRefusalHeaderNames } from "./headers.ts";
import { keyHeaders } from "./idempotency.ts";
import { infer } from "./infer.ts";
import { inferenceFaults, jsonType, operation } from "./operation.ts";
import { inferenceBody } from "./prepare.ts";

export const path = "/v1/chat/completions";

export const chatAdapter: Adapter<ChatCompletionRequest, ChatCompletion> = {
  operation: "chat.completions",
  idPrefix: "chatcmpl-",
  codec: openaiChatCaller,
};

export const createChatCompletion = operation({
  operationId: "createChatCompletion",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a chat completion",
  description:
    "Answers a conversation, in one response or as server-sent events. A request that needs a capability that the model lacks is refused with `unsupported_feature`; nothing is dropped silently.",
  scope: "inference:create",
  metered: chatAdapter.operation,
  headers: keyHeaders,
  request: inferenceBody(ChatCompletionRequest, { validate: validateChatRequest, repeated: chatRepeats }),
  success: {
    description: "The completion, or a stream of its chunks when `stream` is true.",
    headers: [...inferenceHeaderNames, ...limitHeaderNames],
    content: {
      [jsonType]: { schema: ChatCompletion },
      "text/event-stream": {
        schema: ChatCompletionChunk,
        grammar: "chat",
        description:
          "Each event is one `data:` line that holds a chunk (`ChatCompletionChunk`); comment lines keep a quiet stream alive. With `stream_options.include_usage`, a last chunk has the usage and no choices. An error during the stream is an event with an `Error`. The stream ends with exactly one `data: [DONE]`.",
      },
    },
  },
  faults: [...inferenceFaults, "mutually_exclusive", "idempotency_key_reused", "idempotency_answer_lost"],
  otherFaults: false,
  limitRefusalHeaders: limitRefusalHeaderNames,
  handle: (dependencies, call, input) => infer(dependencies, call, input, chatAdapter),
});
