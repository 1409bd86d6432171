/** Which codec speaks which upstream protocol. */
import { anthropicMessagesUpstream } from "../protocol/anthropic-messages/codec.ts";
import type { UpstreamCodec } from "../protocol/codec.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { openaiResponsesUpstream } from "../protocol/openai-responses/codec.ts";
import type { UpstreamProtocol } from "./target.ts";

export const upstreamCodecs: Record<UpstreamProtocol, UpstreamCodec> = {
  "openai-chat": openaiChatUpstream,
  "anthropic-messages": anthropicMessagesUpstream,
  "openai-responses": openaiResponsesUpstream,
};
