/**
 * Reads the usage that engines of both OpenAI protocols report. Engines differ in its place and in the names of its counts:
 * they have dialects, recognised by their fields (docs/engines.md, What engines report). Each dialect has a fixture in
 * test/protocol/dialects.ts.
 */
import { isObject, type JsonObject } from "./json.ts";
import { type Report, type ReportedValues, reportOf } from "./report.ts";

/** The protocol's names of input and output: `prompt` of `prompt_tokens`. */
interface Halves {
  input: string;
  output: string;
}

/** The objects of a report. A missing one is empty. */
interface ReportObjects {
  usage: JsonObject;
  inputDetails: JsonObject;
  outputDetails: JsonObject;
  /** The timings of llama.cpp, which stand beside the usage, and on every chunk if they are requested. */
  timings: JsonObject;
  halves: Halves;
}

/** The places at which a reply or a chunk may have its usage. */
const places: ((wire: JsonObject) => unknown)[] = [
  ({ usage }) => usage,
  /** Moonshot, and engines that are compatible with it. */
  ({ choices }) => entryIn(Array.isArray(choices) ? choices[0] : undefined, "usage"),
  ({ x_groq }) => entryIn(x_groq, "usage"),
];

/** The places of the counts in each dialect. If several have a count, the first one holds. */
const dialects: Record<string, Partial<Record<keyof ReportedValues, (report: ReportObjects) => unknown>>> = {
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
  vllm: { written: ({ inputDetails }) => inputDetails.created_cache_tokens },
  litellm: { written: ({ usage }) => usage.cache_creation_input_tokens },
  dashscope: { written: ({ inputDetails }) => inputDetails.cache_creation_input_tokens },
  "llama.cpp": {
    prompt: ({ timings: { prompt_n, cache_n } }) => (isCount(prompt_n) && isCount(cache_n) ? prompt_n + cache_n : null),
    cached: ({ timings }) => timings.cache_n,
    output: ({ timings }) => timings.predicted_n,
  },
};
const rows = Object.values(dialects);

/** The report in a whole reply or in a chunk. A 0 is a count; a report without both input and output is none. */
export function usageReported(wire: JsonObject, halves: Halves): Report | null {
  const usage = places.map((place) => place(wire)).find(isObject);
  const { timings } = wire;
  if (!usage && !isObject(timings)) return null;
  const report: ReportObjects = {
    usage: usage ?? none,
    inputDetails: objectOf(usage?.[`${halves.input}_tokens_details`]),
    outputDetails: objectOf(usage?.[`${halves.output}_tokens_details`]),
    timings: objectOf(timings),
    halves,
  };
  const values: ReportedValues = {
    prompt: valueFor("prompt", report),
    cached: valueFor("cached", report),
    written: valueFor("written", report),
    output: valueFor("output", report),
    reasoning: valueFor("reasoning", report),
  };
  return reportOf(withReasoning(values, report.usage.total_tokens), { inclusive: true });
}

function valueFor(count: keyof ReportedValues, report: ReportObjects): unknown {
  for (const row of rows) {
    const value = row[count]?.(report);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

/**
 * Adds reasoning to the output if the engine counts it separately, which only the total shows: xAI names the count, Gemini
 * does not. If the total is larger by the cached tokens, it is the prompt that excludes those.
 */
function withReasoning(values: ReportedValues, total: unknown): ReportedValues {
  const { prompt, output, reasoning } = values;
  if (!isCount(total) || !isCount(prompt) || !isCount(output)) return values;
  const beside = total - prompt - output;
  const isNamed = reasoning !== undefined;
  const isCached = beside === Number(values.cached ?? 0) + Number(values.written ?? 0);
  if (beside <= 0 || (isNamed ? reasoning !== beside : isCached)) return values;
  return { ...values, output: output + beside, reasoning: beside };
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
