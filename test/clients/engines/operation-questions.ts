// The requests for embeddings, rankings, completions and fill-in-the-middle that each engine is sent directly. The raw
// responses are recorded in test/engines/recorded-operations, whose README explains the unusual ones.

export const operations = ["embeddings", "rerank", "completions", "infill"] as const;
export type Operation = (typeof operations)[number];

export interface OperationQuestion {
  name: string;
  body: Record<string, unknown>;
}

/** A text that exceeds the context windows of the tiny encoders and of the tiny language model. */
const long = "word ".repeat(700);
const veryLong = "word ".repeat(70_000);
const query = "Which river has locks?";
const documents = ["A canal has locks.", "Grüße 🌍!", "The weather in Oslo.", "The weather in Oslo."];
const unknown = { model: "no-such-model" };
const prompt = "Say hello.";
/** Options for completions. The tiny model was not trained on these prompts, so it generates up to the token limit. */
const plain = { temperature: 0, max_tokens: 8 };
const streaming = { stream: true, stream_options: { include_usage: true } };

export const operationQuestions: Record<Operation, readonly OperationQuestion[]> = {
  embeddings: [
    { name: "a text", body: { input: documents[0] } },
    { name: "texts", body: { input: documents } },
    { name: "floats", body: { input: documents[0], encoding_format: "float" } },
    { name: "base64", body: { input: documents.slice(0, 2), encoding_format: "base64" } },
    { name: "tokens", body: { input: [7, 8, 9] } },
    { name: "lists of tokens", body: { input: [[7, 8, 9], [10]] } },
    { name: "dimensions", body: { input: documents[0], dimensions: 8 } },
    { name: "a user", body: { input: documents[0], user: "somebody" } },
    { name: "an empty text", body: { input: "" } },
    { name: "an empty text among others", body: { input: ["hello", ""] } },
    { name: "no texts", body: { input: [] } },
    { name: "no input", body: {} },
    { name: "too long", body: { input: long } },
    { name: "one of two too long", body: { input: ["hello", long] } },
    { name: "unknown model", body: { input: "hello", ...unknown } },
  ],
  rerank: [
    { name: "texts", body: { query, documents } },
    { name: "the first two", body: { query, documents, top_n: 2 } },
    { name: "more than there are", body: { query, documents, top_n: 9 } },
    { name: "with the documents", body: { query, documents, return_documents: true } },
    { name: "without the documents", body: { query, documents, return_documents: false } },
    { name: "objects with texts", body: { query, documents: documents.map((text) => ({ text })) } },
    { name: "a cap for each", body: { query, documents, max_tokens_per_doc: 4 } },
    { name: "no documents", body: { query, documents: [] } },
    { name: "an empty document", body: { query, documents: ["", "hello"] } },
    { name: "an empty query", body: { query: "", documents } },
    { name: "none wanted", body: { query, documents, top_n: 0 } },
    { name: "too long", body: { query, documents: ["hello", long] } },
    { name: "unknown model", body: { query, documents, ...unknown } },
  ],
  completions: [
    { name: "a prompt", body: { prompt, ...plain } },
    { name: "prompts", body: { prompt: [prompt, "Count."], ...plain } },
    { name: "tokens", body: { prompt: [40, 41, 42], ...plain } },
    { name: "lists of tokens", body: { prompt: [[40, 41, 42], [43]], ...plain } },
    { name: "two choices", body: { prompt, ...plain, n: 2 } },
    { name: "echo", body: { prompt, ...plain, echo: true } },
    { name: "log probabilities", body: { prompt, ...plain, logprobs: 2 } },
    { name: "log probabilities of the prompt", body: { prompt, ...plain, max_tokens: 1, echo: true, logprobs: 1 } },
    { name: "suffix", body: { prompt: "def add(", suffix: "return a + b", ...plain } },
    { name: "the default cap", body: { prompt, temperature: 0 } },
    { name: "no tokens", body: { prompt, temperature: 0, max_tokens: 0 } },
    { name: "an empty prompt", body: { prompt: "", ...plain } },
    { name: "no prompt", body: { ...plain } },
    { name: "too long", body: { prompt: veryLong, ...plain } },
    { name: "unknown model", body: { prompt, ...plain, ...unknown } },
    { name: "a prompt, streamed", body: { prompt, ...plain, ...streaming } },
    { name: "prompts, streamed", body: { prompt: [prompt, "Count."], ...plain, ...streaming } },
    { name: "log probabilities, streamed", body: { prompt, ...plain, logprobs: 2, ...streaming } },
    {
      name: "running counts",
      body: { prompt, ...plain, stream: true, stream_options: { continuous_usage_stats: true, include_usage: true } },
    },
  ],
  infill: [
    {
      name: "before and after",
      body: { input_prefix: "def add(", input_suffix: "return a + b", ...plain, n_predict: 8 },
    },
    {
      name: "with other files",
      body: {
        input_prefix: "def add(",
        input_suffix: "return a + b",
        input_extra: [{ filename: "a.py", text: "x = 1" }],
        prompt: "a",
        temperature: 0,
        n_predict: 8,
      },
    },
    { name: "nothing after", body: { input_prefix: "def add(", temperature: 0, n_predict: 8 } },
    {
      name: "streamed",
      body: { input_prefix: "def add(", input_suffix: "return a + b", temperature: 0, n_predict: 8, stream: true },
    },
    { name: "too long", body: { input_prefix: veryLong, input_suffix: "", temperature: 0, n_predict: 8 } },
  ],
};
