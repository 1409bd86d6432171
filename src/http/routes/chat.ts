/** POST /v1/chat/completions */
import { openaiChatCaller } from "../../protocol/openai-chat/codec.ts";
import type { ChatCompletion, ChatCompletionRequest } from "../../protocol/openai-chat/contract.ts";
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import { validateChatRequest } from "../../protocol/openai-chat/validate.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { type Adapter, infer } from "../infer.ts";

const chat: Adapter<ChatCompletionRequest, ChatCompletion> = {
  operation: "chat.completions",
  idPrefix: "chatcmpl-",
  codec: openaiChatCaller,
  validate: validateChatRequest,
};

export function chatRoute(house: House): Route {
  return {
    path: "/v1/chat/completions",
    methods: { POST: (call) => infer(house, call, chat) },
    faultBody: encodeFault,
  };
}
