/** The wire shapes of the passed operations. */
import Type from "typebox";
import { count, ModelId, oneOf, optional, text, unsupported } from "../../core/protocol/shapes/contract.ts";

/** As many inputs as OpenAI's service takes. */
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
      { description: "A text, texts, the token ids of a text, or lists of them.", "x-must-be": forms },
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

/** Jina's service takes as many; Cohere's half of that. */
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
      Type.Integer({ minimum: 1, description: "Where engines cut a longer document, if they can." }),
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
