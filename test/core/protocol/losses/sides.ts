/**
 * The two sides of each row: decoders of each kind of client's requests to the protocol-neutral form, and each kind of
 * engine.
 */
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import type { InputItem } from "../../../../src/core/protocol/openai-responses/contract.ts";
import { referencesOf, withResolved } from "../../../../src/core/protocol/openai-responses/references.ts";
import { callers, validated } from "../codecs.ts";
import type { ClientName } from "../pairs/wires.ts";
import { says, text, user } from "./probe.ts";

export const ask = { model: "engine", stream: true, outputTokens_max: 4096 };

const stored: InputItem = { type: "message", role: "assistant", content: "STORED" };
export const decoders: Record<ClientName, (body: object) => InferenceRequest> = {
  chat: (body) =>
    callers.chat.request.decode(
      validateChatRequest({ model: "a/b", ...says(user(text("Hello"))), ...body }, ["mirostat"]),
    ),
  messages: (body) =>
    callers.messages.request.decode(
      validated.messages({ model: "a/b", max_tokens: 4096, ...says(user(text("Hello"))), ...body }),
    ),
  responses(body) {
    const wire = validated.responses({ model: "a/b", input: "Hello", ...body });
    const { items } = referencesOf(wire);
    const found = new Map(items.map(({ id }) => [id, stored]));
    return callers.responses.request.decode(withResolved(wire, { history: [stored], items: found }));
  },
};
