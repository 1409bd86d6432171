/** Writes an answer as one chat completion. */
import { type Call, type ChunkOptions, contentBefore, wholeCall } from "./chunks.ts";
import type { Quirk } from "./directives.ts";
import { logprobOf } from "./logprobs.ts";
import type { Choice, Part, SimulatedAnswer } from "./parts.ts";
import type { Json } from "./request.ts";

export function completion(answer: SimulatedAnswer, options: ChunkOptions, withUsage: boolean): Json {
  const body = {
    id: options.id,
    object: "chat.completion",
    created: options.created_s,
    model: options.model,
    choices: answer.choices.map((choice, index) => ({
      index,
      message: message(choice, options.quirks),
      logprobs: choiceLogprobs(choice, options.topLogprobs),
      finish_reason: options.finishes ? choice.finish : null,
    })),
  };
  return withUsage ? { ...body, usage: answer.usage } : body;
}

function message(choice: Choice, quirks: ReadonlySet<Quirk>): Json {
  const textOf = (kind: Part["kind"]) => {
    const parts = choice.parts.filter((part) => part.kind === kind);
    return parts.length > 0 ? parts.flatMap((part) => part.tokens).join("") : null;
  };
  const calls = choice.parts.filter((part) => part.kind === "call");
  const reasoning = textOf("reasoning");
  const field = quirks.has("reasoning-field") ? "reasoning" : "reasoning_content";
  return {
    role: "assistant",
    content: textOf("text") ?? contentBefore(choice),
    refusal: textOf("refusal"),
    ...(reasoning === null ? {} : { [field]: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => toolCall(call, quirks)) }),
  };
}

function toolCall(call: Call, quirks: ReadonlySet<Quirk>): Json {
  const { index: _, ...rest } = wholeCall(call, 0, quirks);
  return rest;
}

function choiceLogprobs(choice: Choice, top: number | null): Json | null {
  const text = choice.parts.find((part) => part.kind === "text");
  if (top === null || text === undefined) return null;
  return { content: text.tokens.map((token, place) => logprobOf(token, place, top)), refusal: null };
}
