/** POST /v1/embeddings. */
import { promptTokens } from "../../core/inference/usage.ts";
import { exampleAt } from "../../core/operations/examples.ts";
import { UnreadableAnswer } from "../../core/protocol/codec.ts";
import { unsupportedByEngine } from "../../core/protocol/engine-options.ts";
import { describe, invalid, type Violation } from "../../core/protocol/violation.ts";
import { EmbeddingList, EmbeddingsRequest, forms, ids_max, inputs_max, tokenId_max } from "./contract.ts";
import { type EngineShape, engineCodec } from "./engine.ts";
import { passed } from "./passed.ts";
import type { Checking, Inputs, Passing } from "./passing.ts";
import { PassedReader } from "./reader.ts";
import { inputReport } from "./usage.ts";

const path = "/v1/embeddings";
const example = exampleAt(path, "embedding");

const engine: EngineShape<EmbeddingsRequest> = {
  path: "/embeddings",
  encode: ({ user: _, ...wire }, { model }) => ({ ...wire, model }),
  reader: (wire, identity, { leftOut }, answer_bytes_max) =>
    new PassedReader({ identity, checking: checking(wire), answer_bytes_max, leftOut }),
};

const embeddings: Passing<EmbeddingsRequest> = {
  operation: "embeddings",
  kind: "embedding",
  idPrefix: "embd-",
  inputs: ({ input }) => inputsOf(input),
  texts: ({ input }) => inputList(input).filter((one) => typeof one === "string"),
  codecOf: (held, answer_bytes_max) => {
    const codec = engineCodec(engine, held, answer_bytes_max);
    return () => codec;
  },
  around: (_, { model }) => ({
    head: '{"object":"list","data":[',
    tail: (usage) => {
      const tokens = promptTokens(usage);
      return `],"model":${JSON.stringify(model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`;
    },
  }),
};

export const createEmbeddings = passed(embeddings, {
  operationId: "createEmbeddings",
  path,
  summary: "Create embeddings",
  description:
    "Turns texts, or lists of token ids, into vectors. The vectors are those of the model's engine, digit for digit, or its numbers as `base64` where it ignores that. A request for a model of another kind is refused with `unsupported_feature`.",
  request: EmbeddingsRequest,
  takesIds: true,
  violation: ({ input }) => (input === undefined || input === null ? null : wrongInput(input)),
  returns: "The vectors, one for each input, with the input's number as `index`.",
  answer: {
    schema: EmbeddingList,
    example: {
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.6, -0.8] }],
      model: "vendor/model",
      usage: { prompt_tokens: 3, total_tokens: 3 },
    },
  },
  examples: [
    example("text", "A text", [], { input: "The tide is out." }),
    example("texts", "Several texts, as base64", [], { input: ["The tide", "is out."], encoding_format: "base64" }),
    example("token_ids", "Token ids", [], {
      input: [
        [464, 17331],
        [318, 503],
      ],
    }),
  ],
});

type Input = EmbeddingsRequest["input"];

function inputsOf(input: Input): Inputs {
  const lists = inputList(input);
  const isText = typeof lists[0] === "string";
  let largest = 0;
  let tokens = 0;
  for (const one of lists) {
    largest = Math.max(largest, typeof one === "string" ? Buffer.byteLength(one) : one.length);
    tokens += one.length;
  }
  return {
    count: lists.length,
    largest_bytes: isText ? largest : 0,
    ids: isText ? null : { tokens, largest },
  };
}

function inputList(input: Input): readonly (string | readonly number[])[] {
  return typeof input === "string" || isIds(input) ? [input] : input;
}

function wrongInput(input: unknown): Violation | null {
  if (fits(input)) return null;
  if (!Array.isArray(input) || input.length === 0 || input.length > inputs_max)
    return invalid("input", `must be ${forms}, but is ${describe(input)}.`);
  const at = input.findIndex((one) => !fits(one) || typeof one !== typeof input[0]);
  const alike = typeof input[0] === "string" ? "a text that is not empty" : "a list of token ids";
  return at < 0 ? null : invalid(`input[${at}]`, `must be ${alike}, but is ${describe(input[at])}.`);
}

/** Whether the value is one input: a text, or its token ids. */
function fits(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  return Array.isArray(value) && value.length > 0 && value.length <= ids_max && value.every(isTokenId);
}

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= tokenId_max;
}

function isIds(input: Exclude<Input, string>): input is number[] {
  return typeof input[0] === "number";
}

/** The check of an answer: one vector for each input, all of the same length. */
function checking({ input, dimensions, encoding_format }: EmbeddingsRequest): Checking {
  const { count } = inputsOf(input);
  const seen = new Uint8Array(count);
  let position = 0;
  let length = -1;
  return {
    list: "data",
    keeps: ["object", "index", "embedding"],
    reads: ["index"],
    // SGLang and LM Studio write numbers whatever is asked for, which clients would read as base64.
    packs: encoding_format === "base64" ? "embedding" : null,
    members: ["usage"],
    item(item) {
      // Gemini leaves out the index 0, and others leave out all of them.
      const isLeftOut = !item.has("index");
      const index = isLeftOut ? position : item.get("index")?.value;
      position += 1;
      if (typeof index !== "number" || seen[index] !== 0) throw new UnreadableAnswer("a vector has a wrong index");
      seen[index] = 1;
      const vector = item.get("embedding");
      const numbers = vector?.kind === "text" ? floatsIn(vector.characters) : (vector?.numbers ?? 0);
      if (numbers < 1) throw new UnreadableAnswer("a vector is no list of numbers");
      // Some engines ignore `dimensions`. They are healthy: only this request is refused.
      if (dimensions && numbers !== dimensions)
        throw unsupportedByEngine(`vectors of ${dimensions} numbers`, "dimensions");
      if (length < 0) length = numbers;
      if (numbers !== length) throw new UnreadableAnswer("the vectors have different lengths");
      return isLeftOut ? `,"index":${index}` : "";
    },
    complete(items) {
      if (items !== count) throw new UnreadableAnswer("the answer has another number of vectors than inputs");
    },
    report: (members) => inputReport(members.get("usage"), inputList(input)),
  };
}

/** The number of 32-bit floats in base64 of this length, with or without padding; 0 if it is no whole number. */
function floatsIn(characters: number): number {
  const floats = Math.floor((characters * 3) / 16);
  const unpadded = Math.ceil((floats * 16) / 3);
  return characters === unpadded || characters === Math.ceil(unpadded / 4) * 4 ? floats : 0;
}
