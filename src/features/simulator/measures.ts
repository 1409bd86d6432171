/** Embeddings and ranks: numbers that depend only on the words of a text, so that similar texts get similar numbers. */
import { clientLeft, type Handler, headers, parsed, waitUntil } from "./chat.ts";
import { parseDirectives, separated } from "./directives.ts";
import { faultResponse } from "./errors.ts";
import { SimulatorRefusal } from "./refusal.ts";
import { isObject, type Json } from "./request.ts";
import { hash, inputTokens } from "./text.ts";

interface Measure {
  /** The text of the request, in which directives are looked for. */
  words: string;
  prompt_tokens: number;
  answer(usage: object): object;
}

/** The handler of requests for embeddings or ranks. The handler waits and fails as directives say. */
export function measured(measure: (body: Json) => Measure): Handler {
  return async (request, options, clock, watch) => {
    const start_ms = performance.now();
    const text = await request.text();
    watch?.body(text);
    const body = parsed(text);
    if (!isObject(body)) throw new SimulatorRefusal(400, "Simulator: the body is not a JSON object.", "invalid_json");
    const { words, prompt_tokens, answer } = measure(body);
    const sources = [options.directives ?? "", request.headers.get("x-simulator") ?? "", separated(words).directives];
    const directives = parseDirectives(...sources);
    const waits_ms = (directives.numbers["slow-headers"] ?? 0) + (directives.numbers.ttft ?? options.ttft_ms ?? 0);
    await waitUntil(start_ms + waits_ms, { request, clock });
    if (request.signal.aborted) return clientLeft({ watch });
    const fault = faultResponse(directives, false, prompt_tokens);
    watch?.ended("complete");
    if (fault) return fault;
    const usage = directives.flags.has("no-usage") ? {} : { usage: { prompt_tokens, total_tokens: prompt_tokens } };
    return new Response(JSON.stringify(answer(usage)), { headers: headers(directives, "application/json") });
  };
}

const dimensions_default = 256;

export function embeddings(body: Json): Measure {
  const { input, encoding_format: format } = body;
  const inputs = typeof input === "string" || isIds(input) ? [input] : input;
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw wrong("input", "must be a text, token ids, or a list of them");
  const dimensions = body.dimensions ?? dimensions_default;
  if (!Number.isInteger(dimensions) || (dimensions as number) < 1) throw wrong("dimensions", "must be a whole number");
  const texts = inputs.map((one) => (isIds(one) ? one.map(String) : wordsOf(String(one))));
  const prompt_tokens = inputs.reduce((sum, one) => sum + (isIds(one) ? one.length : inputTokens(String(one))), 0);
  return {
    words: typeof inputs[0] === "string" ? inputs[0] : "",
    prompt_tokens,
    answer: (usage) => ({
      object: "list",
      data: texts.map((words, index) => {
        const vector = unitVector(words, dimensions as number);
        const embedding = format === "base64" ? base64Of(vector) : vector;
        return { object: "embedding", index, embedding };
      }),
      model: body.model,
      ...usage,
    }),
  };
}

export function rerank(body: Json): Measure {
  const { query, documents, top_n, return_documents } = body;
  if (typeof query !== "string") throw wrong("query", "must be a text");
  if (!Array.isArray(documents) || documents.length === 0) throw wrong("documents", "must be a list of one or more");
  const texts = documents.map((one) => String(typeof one === "object" && one !== null ? (one as Json).text : one));
  const asked = unitVector(wordsOf(separated(query).rest), dimensions_default);
  const ranked = texts
    .map((text, index) => ({
      index,
      text,
      relevance_score: likeness(asked, unitVector(wordsOf(text), dimensions_default)),
    }))
    .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, Number.isInteger(top_n) ? (top_n as number) : texts.length);
  return {
    words: query,
    prompt_tokens: texts.reduce((sum, text) => sum + inputTokens(query) + inputTokens(text), 0),
    answer: (usage) => ({
      id: `rerank-sim${hash(query).toString(16)}`,
      model: body.model,
      results: ranked.map(({ index, text, relevance_score }) => ({
        index,
        relevance_score,
        ...(return_documents === false ? {} : { document: { text } }),
      })),
      ...usage,
    }),
  };
}

/** The words of a text, independent of case, order and punctuation. */
function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu);
  return words ?? [text];
}

/** The number of a vector's components that one word changes. */
const places = 4;

function unitVector(words: readonly string[], dimensions: number): number[] {
  const vector = new Float64Array(dimensions);
  for (const word of words)
    for (let place = 0; place < places; place++) {
      const number = hash(word, place);
      const at = (number >>> 1) % dimensions;
      vector[at] = vector[at]! + ((number & 1) === 0 ? 1 : -1);
    }
  const length = Math.hypot(...vector.filter((one) => one !== 0));
  // If the words of a text cancel each other out, the vector is a fixed one, since a zero vector has no direction.
  if (length === 0) vector[0] = 1;
  return [...vector].map((one) => Math.fround(one / (length || 1)));
}

/** The similarity of two vectors: from 0 (opposite) to 1 (the same). */
function likeness(one: readonly number[], other: readonly number[]): number {
  const cosine = one.reduce((sum, value, at) => sum + value * other[at]!, 0);
  return Math.round(((1 + Math.min(1, Math.max(-1, cosine))) / 2) * 1e6) / 1e6;
}

function base64Of(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}

function isIds(value: unknown): value is number[] {
  return Array.isArray(value) && typeof value[0] === "number";
}

function wrong(param: string, words: string): SimulatorRefusal {
  return new SimulatorRefusal(400, `Simulator: '${param}' ${words}.`, "invalid_value", param);
}
