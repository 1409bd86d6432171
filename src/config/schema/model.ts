/** A public model of sluice.yaml, and the engines that serve it. */
import Type, { type Static } from "typebox";
import { units_max } from "../../store/ledger.ts";
import { tokenizerNames } from "../../tokens/tokenizers.ts";
import type { UpstreamTimeouts } from "../../upstream/target.ts";
import { upstreamTimeouts } from "../limits.ts";
import { closed, type limited, ownConcurrent, ownTokens, whole } from "./values.ts";

const context_tokens_max = 100_000_000;
/** So that a whole context at this price is still an exact number. */
const price_max = units_max / context_tokens_max;

// A default here would hide what the upstream says.
const modelTimeouts = Type.Object(
  Object.fromEntries(
    Object.entries(upstreamTimeouts).map(([name, { minimum, maximum, description }]) => [
      name,
      Type.Optional(whole(minimum, maximum, description)),
    ]),
  ) as Record<keyof UpstreamTimeouts, ReturnType<typeof limited>>,
  { ...closed, description: "How long its engines are waited for, in place of what their upstreams say." },
);

const route = Type.Object(
  {
    upstream: Type.String({
      minLength: 1,
      description: "The name of one of the upstreams, or 'simulator' for the built-in engine.",
    }),
    model: Type.String({ minLength: 1, maxLength: 512, description: "The engine's name for the model." }),
    priority: Type.Optional(whole(0, 1000, "Lower is tried first.", 0)),
    weight: Type.Optional(whole(0, 1_000_000, "The share of requests among routes of one priority.", 1)),
    context_window: Type.Optional(
      whole(1, context_tokens_max, "The engine's own context, where it is smaller than the model's."),
    ),
    concurrent_max: ownConcurrent,
    tokens_in_flight_max: ownTokens,
    instructions: Type.Optional(
      Type.Enum(["anywhere", "head"], {
        type: "string",
        default: "anywhere",
        description:
          "Where the engine's chat template accepts system text. 'head' (Mistral, Gemma and similar): later system messages are put into the user's turn and marked as system text.",
      }),
    ),
  },
  { ...closed, description: "One engine that serves the model." },
);

const price = (description: string) => whole(0, price_max, description);

const prices = Type.Object(
  {
    input: price("An input token that was not in a cache."),
    cached_input: Type.Optional(price("An input token read from the engine's cache. Default: the price of input.")),
    cache_write: Type.Optional(price("An input token written to the engine's cache. Default: the price of input.")),
    output: price("An output token, reasoning included."),
  },
  { ...closed, description: "Micro-units per token: whole numbers, 0 for free." },
);

export const capabilities = [
  "tools",
  "parallel_tools",
  "vision",
  "reasoning",
  "structured_output",
  "logprobs",
  "files",
  "audio_input",
] as const;

export const Model = Type.Object(
  {
    id: Type.String({
      minLength: 3,
      maxLength: 256,
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:@+-]*$",
      patternErrorMessage:
        "must be a model id of the form vendor/model_name: letters, digits, '.', '_' and '-', and in the name also ':', '@' and '+'",
      description: "The public id, vendor/model_name.",
    }),
    owned_by: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "The organization that made the model. Default: the vendor of the id.",
      }),
    ),
    created: whole(0, 253_402_300_799, "When the model was made: Unix seconds."),
    context_window: whole(1, context_tokens_max, "The most tokens of input and output together."),
    max_output_tokens: Type.Optional(
      whole(1, context_tokens_max, "The most output tokens of one answer. Default: the context window."),
    ),
    capabilities: Type.Optional(
      Type.Array(Type.Enum([...capabilities], { type: "string" }), {
        maxItems: capabilities.length,
        uniqueItems: true,
        default: [],
        description: "What the model can do. A request that needs more is refused with unsupported_feature.",
      }),
    ),
    prices,
    tokenizer: Type.Optional(
      Type.Enum([...tokenizerNames], {
        type: "string",
        description:
          "The vocabulary and the chat template that count_tokens counts with: o200k_harmony for gpt-oss, llama3 for Llama 3.1 to 3.3 Instruct. Default: estimates.",
      }),
    ),
    extra_params: Type.Optional(
      Type.Array(
        Type.String({
          pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$",
          patternErrorMessage: "must be the name of a field: letters, digits, '_', '.' and '-', at most 128",
        }),
        {
          maxItems: 64,
          uniqueItems: true,
          default: [],
          description:
            "Fields beyond the contract that requests for this model may have. They are forwarded unchanged.",
        },
      ),
    ),
    timeouts: Type.Optional(modelTimeouts),
    routes: Type.Array(route, { minItems: 1, maxItems: 32, description: "The engines that serve the model." }),
  },
  { ...closed, description: "A public model." },
);
export type ModelEntry = Static<typeof Model>;
