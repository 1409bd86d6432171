/** The codecs of the three protocols, by the names that the tests give them. */
import {
  anthropicMessagesCaller,
  anthropicMessagesUpstream,
} from "../../../src/core/protocol/anthropic-messages/codec.ts";
import { validateMessagesRequest } from "../../../src/core/protocol/anthropic-messages/validate.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../src/core/protocol/openai-chat/validate.ts";
import { openaiResponsesCaller, openaiResponsesUpstream } from "../../../src/core/protocol/openai-responses/codec.ts";
import { validateResponsesRequest } from "../../../src/core/protocol/openai-responses/validate.ts";

export const callers = {
  chat: openaiChatCaller,
  messages: anthropicMessagesCaller(),
  responses: openaiResponsesCaller,
};
export const upstreams = {
  chat: openaiChatUpstream,
  messages: anthropicMessagesUpstream,
  responses: openaiResponsesUpstream,
};
export const validated = {
  chat: (body: unknown) => validateChatRequest(body, []),
  messages: validateMessagesRequest,
  responses: validateResponsesRequest,
};
