/** POST /v1/rerank and /v2/rerank, the paths of Jina and of Cohere: one operation. */
import { promptTokens } from "../../core/inference/usage.ts";
import { exampleAt } from "../../core/operations/examples.ts";
import type { Example, Operation } from "../../core/operations/operation.ts";
import { UnreadableAnswer } from "../../core/protocol/codec.ts";
import { RerankRequest, RerankResult } from "./contract.ts";
import { type EngineShape, engineCodec } from "./engine.ts";
import { passed } from "./passed.ts";
import type { Checking, Inputs, Passing } from "./passing.ts";
import { PassedReader } from "./reader.ts";
import { inputReport } from "./usage.ts";

const engine: EngineShape<RerankRequest> = {
  path: "/rerank",
  encode: ({ return_documents: _, documents, ...wire }, { model }) => ({
    ...wire,
    model,
    documents: documents.map(textOf),
  }),
  reader: (wire, identity, { leftOut }, answer_bytes_max) =>
    new PassedReader({ identity, checking: checking(wire), answer_bytes_max, leftOut }),
};

const rerank: Passing<RerankRequest> = {
  operation: "rerank",
  kind: "rerank",
  idPrefix: "rerank-",
  inputs,
  texts: pairs,
  codecOf: (held, answer_bytes_max) => {
    const codec = engineCodec(engine, held, answer_bytes_max);
    return () => codec;
  },
  around: (_, { responseId, model }) => ({
    head: `{"id":${JSON.stringify(responseId)},"object":"list","model":${JSON.stringify(model)},"results":[`,
    tail: (usage) => {
      const tokens = promptTokens(usage);
      const counts = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
      return `],"usage":${counts},"meta":{"tokens":{"input_tokens":${tokens}}}}`;
    },
  }),
};

const described = {
  summary: "Rank documents",
  description:
    "Ranks documents by how well they answer a query. The scores are those of the model's engine, digit for digit: engines differ in their range. A request for a model of another kind is refused with `unsupported_feature`.",
  request: RerankRequest,
  returns: "The documents by their numbers, the best first.",
  answer: {
    schema: RerankResult,
    example: {
      id: "rerank-019a9e0c52c07c3fb1d2a54e8d3f6b71",
      object: "list",
      model: "vendor/model",
      results: [
        { index: 1, relevance_score: 0.98 },
        { index: 0, relevance_score: 0.02 },
      ],
      usage: { prompt_tokens: 12, total_tokens: 12 },
      meta: { tokens: { input_tokens: 12 } },
    },
  },
};

export const createRerank: Operation = passed(rerank, {
  ...described,
  operationId: "createRerank",
  path: "/v1/rerank",
  examples: examples("/v1/rerank"),
});

/** The same operation as `createRerank`, under the path of Cohere's second version. */
export const createRerankV2: Operation = passed(rerank, {
  ...described,
  operationId: "createRerankV2",
  path: "/v2/rerank",
  examples: examples("/v2/rerank"),
});

function examples(path: string): Example[] {
  const example = exampleAt(path, "rerank");
  return [
    example("texts", "Two documents", [], {
      query: "When is the tide out?",
      documents: ["Boats lie in the harbour.", "The tide is out at noon."],
    }),
    example("best", "The best one, with its text", [], {
      query: "When is the tide out?",
      documents: [{ text: "Boats lie in the harbour." }, { text: "The tide is out at noon." }],
      top_n: 1,
      return_documents: true,
    }),
  ];
}

type Document = RerankRequest["documents"][number];

function textOf(document: Document): string {
  return typeof document === "string" ? document : document.text;
}

/** The texts as the model reads them: the query is repeated before each document. */
function pairs({ query, documents }: RerankRequest): string[] {
  return documents.flatMap((document) => [query, textOf(document)]);
}

/** The documents that hosted services count as one search. */
const documents_per_search = 100;

function inputs({ query, documents, max_tokens_per_doc }: RerankRequest): Inputs {
  const query_bytes = Buffer.byteLength(query);
  let largest = 0;
  for (const document of documents) largest = Math.max(largest, Buffer.byteLength(textOf(document)));
  return {
    count: documents.length,
    largest_bytes: query_bytes + largest,
    ...(max_tokens_per_doc && { cut: { whole_bytes: query_bytes, rest_tokens: max_tokens_per_doc } }),
    more_bytes: query_bytes * (documents.length - 1),
    ids: null,
    searches: Math.ceil(documents.length / documents_per_search),
  };
}

function checking(wire: RerankRequest): Checking {
  const { documents, top_n } = wire;
  const seen = new Uint8Array(documents.length);
  const expected = Math.min(top_n ?? documents.length, documents.length);
  const withDocuments = wire.return_documents === true;
  const texts = withDocuments ? documents.map(textOf) : [];
  return {
    list: "results",
    keeps: ["index", "relevance_score"],
    reads: ["index"],
    members: ["usage"],
    item(item) {
      const index = item.get("index")?.value;
      if (typeof index !== "number" || seen[index] !== 0) throw new UnreadableAnswer("a result has a wrong index");
      if (item.get("relevance_score")?.kind !== "number") throw new UnreadableAnswer("a result has no score");
      seen[index] = 1;
      return withDocuments ? `,"document":${JSON.stringify({ text: texts[index] })}` : "";
    },
    complete(items) {
      if (items !== expected)
        throw new UnreadableAnswer("the answer has another number of results than were asked for");
    },
    report: (members) => inputReport(members.get("usage"), pairs(wire)),
  };
}
