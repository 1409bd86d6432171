/** The requests of each kind of client, decoded to the protocol-neutral form, and each kind of engine. */
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import {
  anthropicMessagesCaller,
  anthropicMessagesUpstream,
} from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import { validateMessagesRequest } from "../../../../src/core/protocol/anthropic-messages/validate.ts";
import type { UpstreamCodec } from "../../../../src/core/protocol/codec.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import {
  openaiResponsesCaller,
  openaiResponsesUpstream,
} from "../../../../src/core/protocol/openai-responses/codec.ts";
import type { InputItem } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { referencesOf, withResolved } from "../../../../src/core/protocol/openai-responses/references.ts";
import { validateResponsesRequest } from "../../../../src/core/protocol/openai-responses/validate.ts";
import type { ClientName, EngineName } from "../pairs/wires.ts";
import { says, text, user } from "./probe.ts";

export const ask = { model: "engine", stream: true, outputTokens_max: 4096 };
export const upstreams: Record<EngineName, UpstreamCodec> = {
  chat: openaiChatUpstream,
  messages: anthropicMessagesUpstream,
  responses: openaiResponsesUpstream,
};

const stored: InputItem = { type: "message", role: "assistant", content: "STORED" };
export const decoders: Record<ClientName, (body: object) => InferenceRequest> = {
  chat: (body) =>
    openaiChatCaller.request.decode(
      validateChatRequest({ model: "a/b", ...says(user(text("Hello"))), ...body }, ["mirostat"]),
    ),
  messages: (body) =>
    anthropicMessagesCaller().request.decode(
      validateMessagesRequest({ model: "a/b", max_tokens: 4096, ...says(user(text("Hello"))), ...body }),
    ),
  responses(body) {
    const wire = validateResponsesRequest({ model: "a/b", input: "Hello", ...body });
    const { items } = referencesOf(wire);
    const found = new Map(items.map(({ id }) => [id, stored]));
    return openaiResponsesCaller.request.decode(withResolved(wire, { history: [stored], items: found }));
  },
};
