/** POST /v1/messages: the same spine as chat completions, in the words of Messages. */
import type { Fault } from "../../inference/fault.ts";
import { anthropicMessagesCaller } from "../../protocol/anthropic-messages/codec.ts";
import type { Message, MessagesRequest } from "../../protocol/anthropic-messages/contract.ts";
import { encodeFault } from "../../protocol/anthropic-messages/fault.ts";
import { validateMessagesRequest } from "../../protocol/anthropic-messages/validate.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { type Adapter, infer } from "../infer.ts";

export function messagesRoute(house: House): Route {
  const adapter = (): Adapter<MessagesRequest, Message> => ({
    operation: "messages",
    idPrefix: "msg_",
    codec: anthropicMessagesCaller(house.messages()),
    validate: validateMessagesRequest,
  });
  return {
    path: "/v1/messages",
    methods: { POST: (call) => infer(house, call, adapter()) },
    faultBody: encodeFault,
    faultHeaders: unifiedLimitHeaders,
  };
}

/** Without these Claude Code takes a window that is used up for a busy minute, and asks again for ever. */
function unifiedLimitHeaders({ code, details }: Fault): Record<string, string> {
  if (code !== "usage_limit_reached") return {};
  return {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-reset": String(details.body?.resets_at),
  };
}
