/** The protocols of engines, by their names in sluice.yaml, and the codec of each. */
import type { Protocol } from "../inference/request.ts";
import { anthropicMessagesUpstream } from "../protocol/anthropic-messages/codec.ts";
import type { UpstreamCodec } from "../protocol/codec.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import { openaiResponsesUpstream } from "../protocol/openai-responses/codec.ts";

export const upstreamCodecs = {
  "openai-chat": openaiChatUpstream,
  "anthropic-messages": anthropicMessagesUpstream,
  "openai-responses": openaiResponsesUpstream,
} satisfies Partial<Record<Protocol, UpstreamCodec>>;

export type UpstreamProtocol = keyof typeof upstreamCodecs;
export const upstreamProtocols = Object.keys(upstreamCodecs) as UpstreamProtocol[];
