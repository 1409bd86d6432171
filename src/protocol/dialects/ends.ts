/** The words for the end of an answer, as far as engines are known to use them: docs/engines.md, How answers end. */
import type { Dialect } from "../dialect.ts";

export const anyEnds: Dialect["finishReasons"] = {
  stop: "stop",
  length: "length",
  max_tokens: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
  error: "failed",
  abort: "failed",
};
