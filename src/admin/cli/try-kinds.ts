/** For each kind of model: the request that tries it, and the text of its answer. Pure. */
import type { ModelKind } from "../../core/inference/model.ts";

/** The model, and the texts that the user gives on the command line. */
export interface Tried {
  model: string;
  message: string;
  documents: readonly string[];
}

export interface Trial {
  path: string;
  body: object;
  /** Whether the answer is streamed, so that its text comes in events, part by part. */
  isStreamed: boolean;
  /** The text of an event, or of the whole answer. */
  textOf(answer: unknown): string;
}

const tokens_max = 256;
const numbers_shown = 8;

/** The documents to rank if the user gives none. */
const documents_default = ["Hello, and welcome.", "The tide is out at noon."];

export const trialOf: Record<ModelKind, (tried: Tried) => Trial> = {
  chat: ({ model, message }) => ({
    path: "/v1/chat/completions",
    body: { model, stream: true, messages: [{ role: "user", content: message }] },
    isStreamed: true,
    textOf: (event) => (event as { choices?: { delta?: { content?: string } }[] }).choices?.[0]?.delta?.content ?? "",
  }),
  completion: ({ model, message }) => ({
    path: "/v1/completions",
    body: { model, stream: true, prompt: message, max_tokens: tokens_max },
    isStreamed: true,
    textOf: (event) => (event as { choices?: { text?: string }[] }).choices?.[0]?.text ?? "",
  }),
  embedding: ({ model, message }) => ({
    path: "/v1/embeddings",
    body: { model, input: message },
    isStreamed: false,
    textOf(answer) {
      const vector = (answer as { data?: { embedding: number[] }[] }).data?.[0]?.embedding ?? [];
      const more = vector.length > numbers_shown ? ", …" : "";
      return `${vector.length} numbers: ${vector.slice(0, numbers_shown).join(", ")}${more}`;
    },
  }),
  rerank({ model, message, documents: given }) {
    const documents = given.length > 0 ? given : documents_default;
    return {
      path: "/v1/rerank",
      body: { model, query: message, documents },
      isStreamed: false,
      textOf(answer) {
        const { results = [] } = answer as { results?: { index: number; relevance_score: number }[] };
        return results.map(({ index, relevance_score }) => `${relevance_score}  ${documents[index]}`).join("\n");
      },
    };
  },
};
