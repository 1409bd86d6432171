/**
 * The usage that engines of both OpenAI protocols report. They differ in where it stands and what its counts are called: a
 * table of dialects, recognised by their fields (docs/engines.md, What engines report). Each has a fixture in
 * test/protocol/dialects.ts.
 */
import { isObject, type JsonObject } from "./json.ts";
import { type Report, type ReportWords, reportOf } from "./report.ts";

/** The protocol's names of the halves, such as `prompt` of `prompt_tokens`. */
export interface Halves {
  input: string;
  output: string;
}

/** A report, taken apart; what is missing is empty. */
interface Said {
  usage: JsonObject;
  inputDetails: JsonObject;
  outputDetails: JsonObject;
  /** The timings of llama.cpp: beside the usage, and on every chunk where they are asked for. */
  timings: JsonObject;
  halves: Halves;
}

/** Where a report stands in a reply or a chunk. */
const places: ((wire: JsonObject) => unknown)[] = [
  ({ usage }) => usage,
  /** Moonshot, and those that serve as it does. */
  ({ choices }) => entryIn(Array.isArray(choices) ? choices[0] : undefined, "usage"),
  ({ x_groq }) => entryIn(x_groq, "usage"),
];

/** By name, what each calls the counts: of several words for one count the first that is there. */
const dialects: Record<string, Partial<Record<keyof ReportWords, (said: Said) => unknown>>> = {
  openai: {
    prompt: ({ usage, halves }) => usage[`${halves.input}_tokens`],
    cached: ({ inputDetails }) => inputDetails.cached_tokens,
    written: ({ inputDetails }) => inputDetails.cache_write_tokens,
    output: ({ usage, halves }) => usage[`${halves.output}_tokens`],
    reasoning: ({ outputDetails }) => outputDetails.reasoning_tokens,
  },
  sglang: { reasoning: ({ usage }) => usage.reasoning_tokens },
  deepseek: { cached: ({ usage }) => usage.prompt_cache_hit_tokens },
  moonshot: { cached: ({ usage }) => usage.cached_tokens },
  dashscope: { written: ({ inputDetails }) => inputDetails.cache_creation_input_tokens },
  "llama.cpp": {
    prompt: ({ timings: { prompt_n, cache_n } }) => (isCount(prompt_n) && isCount(cache_n) ? prompt_n + cache_n : null),
    cached: ({ timings }) => timings.cache_n,
    output: ({ timings }) => timings.predicted_n,
  },
};
const rows = Object.values(dialects);

/** The report of a whole reply, or of a chunk. An explicit 0 stays 0; without either half there is no report. */
export function usageReported(wire: JsonObject, halves: Halves): Report | null {
  const usage = places.map((place) => place(wire)).find(isObject);
  const { timings } = wire;
  if (!usage && !isObject(timings)) return null;
  const said: Said = {
    usage: usage ?? none,
    inputDetails: objectOf(usage?.[`${halves.input}_tokens_details`]),
    outputDetails: objectOf(usage?.[`${halves.output}_tokens_details`]),
    timings: objectOf(timings),
    halves,
  };
  const words: ReportWords = {
    prompt: wordFor("prompt", said),
    cached: wordFor("cached", said),
    written: wordFor("written", said),
    output: wordFor("output", said),
    reasoning: wordFor("reasoning", said),
  };
  return reportOf(withReasoning(words, said.usage.total_tokens), { inclusive: true });
}

function wordFor(count: keyof ReportWords, said: Said): unknown {
  for (const row of rows) {
    const word = row[count]?.(said);
    if (word !== undefined && word !== null) return word;
  }
  return undefined;
}

/**
 * Reasoning may stand beside the output, and only the total tells: xAI names it, Gemini does not. A total that is larger by
 * what was cached is of a prompt that leaves this out.
 */
function withReasoning(words: ReportWords, total: unknown): ReportWords {
  const { prompt, output, reasoning } = words;
  if (!isCount(total) || !isCount(prompt) || !isCount(output)) return words;
  const beside = total - prompt - output;
  const isNamed = reasoning !== undefined;
  const isCached = beside === Number(words.cached ?? 0) + Number(words.written ?? 0);
  if (beside <= 0 || (isNamed ? reasoning !== beside : isCached)) return words;
  return { ...words, output: output + beside, reasoning: beside };
}

const none: JsonObject = Object.freeze({});

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : none;
}

function entryIn(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
