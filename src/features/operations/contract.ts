/** The wire shapes of the operations whose answers are passed on (passing.ts). */
import Type from "typebox";
import { absoluteBounds } from "../../core/protocol/engine-options.ts";
import {
  count,
  ModelId,
  nullable,
  oneOf,
  openObject,
  optional,
  text,
  unixSeconds,
  unsupported,
} from "../../core/protocol/shapes/contract.ts";

/** The most inputs of a request, as at OpenAI. */
export const inputs_max = 2048;
export const ids_max = 131_072;
export const tokenId_max = 2 ** 31 - 1;
export const forms = `a text that is not empty, 1 to ${inputs_max} of them, a list of token ids, or 1 to ${inputs_max} such lists`;

const tokenId = Type.Integer({ minimum: 0, maximum: tokenId_max });
const tokenIds = Type.Array(tokenId, { minItems: 1, maxItems: ids_max });
const nonEmpty = Type.String({ minLength: 1 });

export const EmbeddingsRequest = Type.Object(
  {
    model: ModelId,
    input: Type.Union(
      [
        nonEmpty,
        Type.Array(nonEmpty, { minItems: 1, maxItems: inputs_max }),
        tokenIds,
        Type.Array(tokenIds, { minItems: 1, maxItems: inputs_max }),
      ],
      {
        description:
          "A text, texts, the token ids of a text, or lists of them. Services take 400,000 ids in all, unless they set another limit.",
        "x-must-be": forms,
      },
    ),
    dimensions: optional(
      Type.Integer({
        minimum: 1,
        maximum: 65_536,
        description: "The length of the vectors, for models that can shorten them.",
      }),
    ),
    encoding_format: optional(
      oneOf(["float", "base64"], { description: "`float` by default. `base64`: 32-bit floats, little-endian." }),
    ),
    user: optional(Type.String({ description: "Your name for the end user. It is not sent to the engine." })),
  },
  { $id: "EmbeddingsRequest" },
);
export type EmbeddingsRequest = Type.Static<typeof EmbeddingsRequest>;

const InputUsage = Type.Object({ prompt_tokens: count(), total_tokens: count() });

const Embedding = Type.Object(
  {
    object: Type.Optional(Type.Literal("embedding")),
    index: count(),
    embedding: Type.Union([Type.Array(Type.Number()), text], { description: "Numbers, or a text with `base64`." }),
  },
  { $id: "Embedding" },
);

export const EmbeddingList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(Embedding),
    model: ModelId,
    usage: InputUsage,
  },
  { $id: "EmbeddingList" },
);

/** The most documents of a request, as at Jina; Cohere allows half of that. */
const documents_max = 2048;

export const RerankRequest = Type.Object(
  {
    model: ModelId,
    query: nonEmpty,
    documents: Type.Array(Type.Union([text, Type.Object({ text })]), {
      minItems: 1,
      maxItems: documents_max,
      description: "Texts, or objects with a `text`.",
    }),
    top_n: optional(Type.Integer({ minimum: 1, description: "How many of the best are returned; all by default." })),
    return_documents: optional(
      Type.Boolean({ description: "Whether each result has its document, as an object with its `text`." }),
    ),
    max_tokens_per_doc: optional(
      Type.Integer({
        minimum: 1,
        description: "Where engines cut a longer document, if they can. Its whole length is reserved.",
      }),
    ),
    max_chunks_per_doc: unsupported("chunks of documents (send each chunk as a document)"),
    rank_fields: unsupported("fields of documents (send a document as its text)"),
  },
  { $id: "RerankRequest" },
);
export type RerankRequest = Type.Static<typeof RerankRequest>;

export const RerankResult = Type.Object(
  {
    id: text,
    object: Type.Literal("list"),
    model: ModelId,
    results: Type.Array(
      Type.Object({
        index: count(),
        relevance_score: Type.Number(),
        document: Type.Optional(Type.Object({ text }, { description: "With `return_documents`." })),
      }),
      { description: "The best first." },
    ),
    usage: InputUsage,
    meta: Type.Object(
      { tokens: Type.Object({ input_tokens: count() }) },
      { description: "As Cohere's clients read it." },
    ),
  },
  { $id: "RerankResult" },
);

const penalty = () => optional(Type.Number({ minimum: -2, maximum: 2 }));
/** The most log probabilities for a token, as at OpenAI. */
const logprobs_max = 5;

export const CompletionsRequest = Type.Object(
  {
    model: ModelId,
    prompt: Type.Union(
      [
        text,
        Type.Array(text, { minItems: 1, maxItems: 1 }),
        tokenIds,
        Type.Array(tokenIds, { minItems: 1, maxItems: 1 }),
      ],
      { description: "A text or its token ids, alone or as a list of one." },
    ),
    suffix: optional(
      Type.String({ description: "The text after the one that is filled in, for engines that can do that." }),
    ),
    max_tokens: optional(Type.Integer({ minimum: 1, description: "16 by default." })),
    temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
    n: optional(Type.Literal(1, { "x-unsupported": { "*": "more than one choice" } })),
    best_of: optional(Type.Literal(1, { "x-unsupported": { "*": "a choice among several" } })),
    stream: optional(Type.Boolean()),
    stream_options: optional(
      openObject({ description: "Needs `stream: true`." }, { include_usage: optional(Type.Boolean()) }),
    ),
    logprobs: optional(Type.Integer({ minimum: 0, maximum: logprobs_max })),
    echo: optional(Type.Boolean({ description: "Whether the answer begins with the prompt." })),
    stop: optional(
      Type.Union([nonEmpty, Type.Array(nonEmpty, { maxItems: absoluteBounds.stops_max })], {
        description: "Generation stops before one of these texts. Engines differ in how many they take.",
      }),
    ),
    presence_penalty: penalty(),
    frequency_penalty: penalty(),
    seed: optional(Type.Integer()),
    logit_bias: optional(openObject({ maxProperties: 1024 })),
    user: optional(Type.String({ description: "Your name for the end user. It is not sent to the engine." })),
  },
  { $id: "CompletionsRequest" },
);
export type CompletionsRequest = Omit<Type.Static<typeof CompletionsRequest>, "stream_options"> & {
  stream_options?: { include_usage?: boolean | null } | null;
};

const choiceKeys = {
  index: count(),
  text,
  logprobs: nullable(openObject({ description: "As the engine wrote them." })),
};
const completionKeys = { id: text, object: Type.Literal("text_completion"), created: unixSeconds, model: ModelId };
const CompletionUsage = openObject({}, { prompt_tokens: count(), completion_tokens: count(), total_tokens: count() });
const finishReason = oneOf(["stop", "length", "content_filter", "tool_calls"]);

export const Completion = Type.Object(
  {
    ...completionKeys,
    choices: Type.Array(Type.Object({ ...choiceKeys, finish_reason: finishReason })),
    usage: CompletionUsage,
  },
  { $id: "Completion" },
);

export const CompletionChunk = Type.Object(
  {
    ...completionKeys,
    choices: Type.Array(Type.Object({ ...choiceKeys, finish_reason: nullable(finishReason) })),
    usage: Type.Optional(nullable(CompletionUsage)),
  },
  { $id: "CompletionChunk" },
);
