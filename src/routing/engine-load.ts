/** What an engine says of its own load, in Prometheus' text form, under the names that vLLM, SGLang and llama.cpp have. Pure. */

export interface EngineLoad {
  /** Requests that wait in the engine; of all that it lists. */
  waiting: number;
  /** How much of its cache is taken, from 0 to 1: the fullest. Null where it does not say. */
  cacheShare: number | null;
}

const waitingNames = ["vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"];
const cacheNames = [
  ...["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"],
  "llamacpp:kv_cache_usage_ratio",
];
/** A cache that is fuller makes requests wait, or be begun anew. */
const cacheShare_max = 0.95;

/** Null where none of the names is there. */
export function engineLoadOf(text: string): EngineLoad | null {
  const waiting = valuesOf(text, waitingNames);
  const shares = valuesOf(text, cacheNames);
  if (waiting.length === 0 && shares.length === 0) return null;
  return {
    waiting: waiting.reduce((sum, value) => sum + value, 0),
    cacheShare: shares.length === 0 ? null : Math.max(...shares),
  };
}

export function isCrowded({ waiting, cacheShare }: EngineLoad, waiting_max: number): boolean {
  return waiting > waiting_max || (cacheShare !== null && cacheShare > cacheShare_max);
}

/** One line for each set of labels. */
function valuesOf(text: string, names: readonly string[]): number[] {
  return text.split("\n").flatMap((line) => {
    const name = names.find((one) => line.startsWith(one) && /^[ {]/.test(line.slice(one.length)));
    if (!name) return [];
    const value = Number(/^(?:\{.*\})? +(\S+)/.exec(line.slice(name.length))?.[1]);
    return Number.isFinite(value) && value >= 0 ? [value] : [];
  });
}
