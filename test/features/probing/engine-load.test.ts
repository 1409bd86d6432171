/** The metrics in which each kind of engine reports its load. */
import { expect, test } from "bun:test";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { isCrowded, engineLoadOf as loadOf } from "../../../src/features/probing/engine-load.ts";

const engineLoadOf = (text: string) => loadOf(text, dialects.generic.load);

test("vLLM, SGLang and llama.cpp are understood, whatever stands beside", () => {
  const vllm = `# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a b"} 3.0
vllm:num_requests_waiting{engine="1",model_name="a } 9"} 2
vllm:num_requests_waiting_by_reason{engine="0"} 70
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
vllm:num_requests_running{engine="0"} 12`;
  expect(engineLoadOf(vllm)).toEqual({ waiting: 5, cacheShare: 0.5 });
  expect(engineLoadOf('sglang:num_queue_reqs{tp="0"} 7\nsglang:token_usage 0.97')).toEqual({
    waiting: 7,
    cacheShare: 0.97,
  });
  expect(engineLoadOf("llamacpp:requests_deferred 1\n")).toEqual({ waiting: 1, cacheShare: null });
});

test("what is no number, and a page without the names, say nothing", () => {
  for (const text of ["", "<html>vllm:num_requests_waiting 3</html>", "vllm:num_requests_waiting NaN", "up 1"])
    expect(engineLoadOf(text)).toBeNull();
});

test("crowded is one in which more wait than may, or whose cache is full", () => {
  expect(isCrowded({ waiting: 4, cacheShare: 0.95 }, 4)).toBe(false);
  expect(isCrowded({ waiting: 5, cacheShare: null }, 4)).toBe(true);
  expect(isCrowded({ waiting: 0, cacheShare: 0.96 }, 4)).toBe(true);
});
