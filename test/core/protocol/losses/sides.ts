/** The two sides of each row: what each kind of client asks, and what reaches it; and what each kind of engine is asked. */
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import type { Result } from "../../../../src/core/inference/result.ts";
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

export const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1, model: "a/b" };
/** A request of each kind of client, for which whatever engines say can be written. */
export const wires = {
  chat: validated.chat({
    model: "a/b",
    ...says(user(text("a"))),
    logprobs: true,
    stop: "END",
    tools: [{ type: "custom", custom: { name: "patch" } }],
  }),
  messages: validated.messages({
    model: "a/b",
    max_tokens: 1,
    ...says(user(text("a"))),
    stop_sequences: ["END"],
  }),
  responses: validated.responses({
    model: "a/b",
    input: "a",
    include: ["message.output_text.logprobs"],
    tools: [
      { type: "custom", name: "patch" },
      { type: "namespace", name: "space", tools: [{ type: "function", name: "f" }] },
    ],
  }),
};

/** The whole answer in each kind of client's protocol. */
export const encoders: Record<ClientName, (answer: Result) => unknown> = {
  chat: (answer) => callers.chat.response.encode(answer, wires.chat),
  messages: (answer) => callers.messages.response.encode(answer, wires.messages),
  responses: (answer) => callers.responses.response.encode(answer, wires.responses),
};
