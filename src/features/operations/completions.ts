/** POST /v1/completions. */
import { exampleAt } from "../../core/operations/examples.ts";
import { encodeUsage } from "../../core/protocol/openai-chat/decode-stream.ts";
import { requires, rulesOf } from "../../core/protocol/rules.ts";
import { ChoiceDecoder, choiceChecking } from "./choices.ts";
import { inputsOf, promptOf, textsOf, wrongPrompt } from "./completion-input.ts";
import { CompletionEncoder, headOf } from "./completion-stream.ts";
import { Completion, CompletionChunk, CompletionsRequest } from "./contract.ts";
import { generatedFor } from "./echo.ts";
import { type EngineShape, engineCodec } from "./engine.ts";
import { infill } from "./infill.ts";
import { passed } from "./passed.ts";
import type { Passing } from "./passing.ts";
import { PassedReader } from "./reader.ts";

const path = "/v1/completions";
const example = exampleAt(path, "completion");

const engine: EngineShape<CompletionsRequest> = {
  path: "/completions",
  encode: ({ user: _, stream_options: __, n: ___, best_of: ____, ...wire }, { model, stream }, request) => ({
    ...wire,
    model,
    prompt: promptOf({ ...wire, prompt: wire.prompt }),
    max_tokens: request.outputTokens_max,
    // Engines without infill refuse a `suffix`, even an empty one, so an empty one is left out.
    suffix: wire.suffix || undefined,
    // The engine transformers fails on an empty list.
    stop: wire.stop?.length ? wire.stop : undefined,
    stream,
    // Usage is always requested, because the service meters by it.
    stream_options: stream ? { include_usage: true } : undefined,
  }),
  lacks(wire, { completions, bounds: { stops_max } }) {
    if (Array.isArray(wire.stop) && wire.stop.length > stops_max)
      return { feature: `more than ${stops_max} stop sequences`, param: "stop" };
    if (wire.suffix && completions.suffix === "none") return { feature: "a suffix", param: "suffix" };
    if (wire.echo && !completions.echo) return { feature: "an echo of the prompt", param: "echo" };
    if (typeof wire.logprobs === "number" && !completions.logprobs)
      return { feature: "log probabilities of completions", param: "logprobs" };
    return null;
  },
  reader(wire, identity, context, answer_bytes_max) {
    const checking = choiceChecking(context, generatedFor(wire));
    return new PassedReader({ identity, checking, answer_bytes_max, leftOut: context.leftOut });
  },
  decoder: (wire, identity, context) => new ChoiceDecoder(identity, context, generatedFor(wire)),
};

/** Like `infill`, but it also refuses the fields that the engine does not support in an ordinary completion. */
const filling: EngineShape<CompletionsRequest> = {
  ...infill,
  lacks: (wire, dialect) => engine.lacks?.(wire, dialect) ?? infill.lacks?.(wire, dialect) ?? null,
};

const completions: Passing<CompletionsRequest> = {
  operation: "completions",
  kind: "completion",
  idPrefix: "cmpl-",
  inputs: inputsOf,
  texts: textsOf,
  codecOf(held, answer_bytes_max) {
    const plain = engineCodec(engine, held, answer_bytes_max);
    const filled = held.wire.suffix ? engineCodec(filling, held, answer_bytes_max) : null;
    return (dialect) => (dialect?.completions.suffix === "infill" && filled) || plain;
  },
  around: (_, identity) => ({
    head: `${headOf(identity)}[`,
    tail: (usage) => `],"usage":${JSON.stringify(encodeUsage(usage))}}`,
  }),
  encoder: (wire, context) => new CompletionEncoder(wire, context),
};

const completionExample = {
  id: "cmpl-019a9e0c52c07c3fb1d2a54e8d3f6b71",
  object: "text_completion",
  created: 1795230000,
  model: "vendor/model",
  choices: [{ index: 0, text: " is out.", logprobs: null, finish_reason: "stop" }],
};

export const createCompletion = passed(completions, {
  operationId: "createCompletion",
  path,
  summary: "Complete a prompt",
  description:
    "Continues a bare prompt, or fills in the text between it and a `suffix`, in one response or as server-sent events. Texts and log probabilities are those of the model's engine. What its engine lacks is refused with `unsupported_feature`.",
  request: CompletionsRequest,
  takesIds: true,
  violation: ({ prompt }) => wrongPrompt(prompt),
  rules: rulesOf([requires("stream_options", "stream", true)]),
  returns: "The completion, or a stream of its chunks when `stream` is true.",
  answer: {
    schema: Completion,
    example: { ...completionExample, usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 } },
  },
  streamed: {
    schema: CompletionChunk,
    grammar: "chat",
    description:
      "Each event is one `data:` line that holds a chunk; comment lines keep a quiet stream alive. With `stream_options.include_usage`, a last chunk has the usage and no choices. An error during the stream is an event with an `Error`. The stream ends with exactly one `data: [DONE]`.",
    example: `data: ${JSON.stringify(completionExample)}\n\ndata: [DONE]\n\n`,
  },
  examples: [
    example("prompt", "A prompt", [], { prompt: "The tide", max_tokens: 8 }),
    example(
      "streamed",
      "Streamed, with the usage at the end",
      [],
      { prompt: "The tide", max_tokens: 8, stream: true, stream_options: { include_usage: true } },
      "text/event-stream",
    ),
  ],
});
