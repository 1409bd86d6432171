/** The settings of a public model, and of the engines that serve it. */
import { modelKinds, tokenizerNames } from "../../core/inference/model.ts";
import { price_decimals } from "../../core/inference/money.ts";
import type { Capability } from "../../core/inference/request.ts";
import { instantMessage, instantPattern } from "../instant.ts";
import { amount, choice, flag, group, list, text, type Written, whole } from "./row.ts";
import { capacity, timeouts } from "./upstream.ts";

export const capabilities = [
  "tools",
  "parallel_tools",
  "vision",
  "reasoning",
  "structured_output",
  "logprobs",
  "files",
  "audio_input",
] as const satisfies Capability[];

const context_tokens_max = 100_000_000;
const tokens = { minimum: 1, maximum: context_tokens_max };
/** At the highest price, the cost of a whole context in picos (10⁻¹² of the currency) still fits into 64 bits. */
const price = { minimum: 0, maximum: 90_000, decimals: price_decimals };

const route = group(
  {
    upstream: text({ isRequired: true, minLength: 1 }, "A name from `upstreams`, or `simulator`."),
    model: text({ isRequired: true, minLength: 1, maxLength: 512 }, "The engine's own name for the model."),
    priority: whole({ minimum: 0, maximum: 1000, default: 0 }, "Lower is tried first."),
    weight: whole(
      { minimum: 0, maximum: 1_000_000, default: 1 },
      "The share of requests among routes of one priority.",
    ),
    continue: flag(
      { default: false },
      "Whether this engine [continues](routing.md#going-on-in-mid-answer) a streamed answer that another broke off. For vLLM and SGLang.",
    ),
    context_window: whole(
      { ...tokens, absent: "the model's" },
      "The engine's own context, if it is smaller than the model's.",
    ),
    concurrent_max: {
      ...capacity.concurrent_max,
      absent: "the upstream's",
      description: "The same limit for this route alone.",
    },
    tokens_in_flight_max: {
      ...capacity.tokens_in_flight_max,
      absent: "the upstream's",
      description: "The same limit for this route alone.",
    },
    instructions: choice(
      ["anywhere", "head"],
      { default: "anywhere" },
      "Where the chat template accepts system text. With `head` (Mistral, Gemma), later system text goes into the user's turn.",
    ),
  },
  "One engine that serves the model.",
);

const prices = group(
  {
    input: amount({ ...price, isRequired: true }, "Input that was not in a cache."),
    cached_input: amount({ ...price, absent: "that of `input`" }, "Input read from the engine's cache."),
    cache_write: amount({ ...price, absent: "that of `input`" }, "Input written to the engine's cache."),
    output: amount(
      { ...price, absent: "none" },
      "Output, reasoning included. Needed for `chat` and `completion`, and only there.",
    ),
    search: amount(
      { ...price, absent: "none" },
      "A thousand searches, for `rerank`: a search is up to 100 documents of a request. Charged beside the tokens.",
    ),
  },
  "Prices of a million tokens in `metering.currency`, such as 0.15; 0 for free.",
  { isRequired: true },
);

const id = {
  minLength: 3,
  maxLength: 256,
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:@+-]*$",
  patternErrorMessage:
    "must be a model id of the form vendor/model_name: letters, digits, '.', '_' and '-', and in the name also ':', '@' and '+'",
};

const instant = { pattern: instantPattern, patternErrorMessage: instantMessage };

export const Model = group(
  {
    id: text({ ...id, isRequired: true }, "The public id, `vendor/model_name`, unique in the list."),
    kind: choice(
      modelKinds,
      { default: "chat" },
      "What the model is [for](engines.md#embeddings-rerank-and-completions). `chat`: chat completions, Messages and Responses.",
    ),
    aliases: list(
      text(id, ""),
      { maxItems: 64, uniqueItems: true, default: [] },
      "Other names that requests may use, such as an earlier id.",
    ),
    deprecated_at: text(
      { ...instant, absent: "`retires_at`" },
      "When clients should stop using the model: a date (its first moment in UTC), or an instant such as `2030-01-31T12:00:00Z`.",
    ),
    retires_at: text(
      { ...instant, absent: "never" },
      "When the id and its aliases [are no longer served](routing.md#aliases-and-retirements), in the same form.",
    ),
    replaced_by: text({ ...id, absent: "none" }, "The id of the model of this file that takes its place."),
    redirect: flag({ default: false }, "Whether that model answers requests for the retired id."),
    owned_by: text(
      { minLength: 1, maxLength: 256, absent: "the id's vendor" },
      "The organization that made the model.",
    ),
    created: whole(
      { isRequired: true, minimum: 0, maximum: 253_402_300_799 },
      "When the model was made: Unix seconds.",
    ),
    context_window: whole({ ...tokens, isRequired: true }, "The most tokens of input and output together."),
    max_output_tokens: whole({ ...tokens, absent: "the context window" }, "The most output tokens of one answer."),
    capabilities: list(
      choice(capabilities, {}, ""),
      { maxItems: capabilities.length, uniqueItems: true, default: [] },
      `Any of ${capabilities.map((name) => `\`${name}\``).join(", ")}. \`parallel_tools\` needs \`tools\`. [What requires which](protocols.md#what-requires-a-capability).`,
    ),
    prices,
    tokenizer: choice(
      tokenizerNames,
      { absent: "estimates" },
      "The vocabulary and chat template for counting tokens: of gpt-oss, or of Llama 3.1, 3.2 and 3.3 Instruct, text only.",
    ),
    extra_params: list(
      text(
        {
          pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$",
          patternErrorMessage: "must be the name of a field: letters, digits, '_', '.' and '-', at most 128",
        },
        "",
      ),
      { maxItems: 64, uniqueItems: true, default: [] },
      "Fields beyond the contract that requests may have, such as `top_k`, forwarded unchanged. Refused at the start are fields that change how much is generated, the order of requests, or the prompt.",
    ),
    bounds: choice(
      ["specification", "engine"],
      { default: "specification" },
      "What chat completions may have. `specification`: 1 to 128 tools, 1 to 2,000 messages, 4 stop sequences, names of 64 letters, digits, `_` and `-`. `engine`: what the [dialect](engines.md#dialects) takes, no tools, and the effort `max`; at most 4,096 tools, 20,000 messages, 64 stop sequences, names of 256 characters.",
    ),
    answer_bytes_max: whole(
      { minimum: 1024, maximum: 1_073_741_824, default: 134_217_728 },
      "The largest answer of an engine, for kinds other than `chat`.",
    ),
    timeouts: timeouts({}, "Time-outs of this model, in place of its upstreams'."),
    routes: list(route, { isRequired: true, minItems: 1, maxItems: 32 }, "The engines that serve the model."),
  },
  "A public model.",
);
export type ModelEntry = Written<typeof Model.properties>;
