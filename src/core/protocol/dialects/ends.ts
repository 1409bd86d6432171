/** The words by which engines are known to name the end of an answer: docs/engines.md, How answers end. */
import type { Dialect, FinishReason } from "../dialect.ts";

function meaning<Meaning extends FinishReason>(of: Meaning, words: string): Record<string, Meaning> {
  return Object.fromEntries(words.split(" ").map((word) => [word, of]));
}

export const anyEnds: Dialect["finishReasons"] = {
  "": "unfinished",
  ...meaning("unfinished", "null none nil undefined unfinished unspecified not_finished in_progress running"),
  ...meaning("stop", "stop stopped eos eos_token end_turn end_of_turn stop_sequence stop_token stop_string pause_turn"),
  ...meaning("stop", "end done complete completed finished finish success"),
  ...meaning("length", "length max_length max_tokens max_new_tokens max_output_tokens max_completion_tokens"),
  ...meaning("length", "model_length model_context_window_exceeded context_window_exceeded context_length"),
  ...meaning("length", "context_length_exceeded token_limit token_limit_reached max_tokens_reached limit error_limit"),
  ...meaning("tool_calls", "tool_calls tool_call tool_use tool function_call function_calls"),
  ...meaning("content_filter", "content_filter content_filtered filter filtered sensitive safety image_safety refusal"),
  ...meaning("content_filter", "refused guardrail guardrails guardrail_intervened recitation blocked blocklist spii"),
  ...meaning("content_filter", "prohibited_content image_prohibited_content content_policy content_policy_violation"),
  ...meaning("content_filter", "content_blocked moderation policy_violation"),
  ...meaning("failed", "error errored failed failure abort aborted cancel cancelled canceled user_cancel timeout"),
  ...meaning(
    "failed",
    "timed_out unknown interrupted exception crash preempted disconnected network_error server_error",
  ),
  ...meaning("failed", "internal_error internal_server_error error_toxic rate_limit overloaded out_of_memory oom"),
  ...meaning("failed", "function_call_filter malformed_function_call unexpected_tool_call malformed_response no_image"),
  ...meaning("failed", "insufficient_system_resource model_error engine_error api_error"),
};
