/** Which codec speaks which upstream protocol. */
import type { UpstreamCodec } from "../protocol/codec.ts";
import { openaiChatUpstream } from "../protocol/openai-chat/codec.ts";
import type { UpstreamProtocol } from "./target.ts";

export const upstreamCodecs: Partial<Record<UpstreamProtocol, UpstreamCodec>> = {
  "openai-chat": openaiChatUpstream,
};
