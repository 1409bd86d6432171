/** The texts of refusals, as far as engines are known to use them: docs/engines.md, What engines say. */
import type { Refusals } from "../dialect.ts";

export const anyRefusals: Refusals = {
  tooLong: [
    /maximum context|context (length|window|size|limit)|max(imum)?_?model_?len|longer than the (model|maximum)/i,
    /exceeds? the (available )?context|prompt (is )?too long|too many (input )?tokens|maximum (prompt|input) length/i,
    /input tokens exceed|input token count|`inputs` tokens \+|\bn_ctx\b|context the overflows/i,
    // LiteLLM, Bedrock, z.ai, DashScope, Moonshot, Copilot.
    /ContextWindowExceeded|input is too long|prompt exceeds max length|range of input length should be/i,
    /exceeded model token limit|prompt token count of \d+ exceeds/i,
  ],
  inputTokens: [
    /(?<!at least )\b(\d+) (?:tokens )?(?:in (?:the messages|(?:your|the) prompt)|input tokens|tokens from the input|of text input|`inputs` tokens)/i,
    /(?:messages resulted in|input of about|request contains|prompt contains|keep the first) (\d+) tokens/i,
    /(?:prompt is too long:|context limit:) (\d+) (?:tokens >|\+ \d+ >)/i,
    /(?:request|input) \((\d+) tokens\)/i,
    /(?:total length|prompt \(length|token count \(|n_keep \()\s?(\d+)\)/i,
    /token count of (\d+)/i,
  ],
  inputTokensAtLeast: [/\bat least (\d+) input tokens/i, /\binput about (\d+)/i],
  contextTokens: [
    /maximum (?:context|prompt|input|model) length(?: is|:| of)? (\d+)/i,
    /(?:context (?:length|size|window)|available context size) \((\d+)/i,
    /context (?:length|size|window|limit) (?:of|is|:)? ?(\d+)/i,
    /(\d+) maximum context length/i,
    /max_model_len (?:of |is |= ?)?(\d+)/i,
    /tokens > (\d+)(?: maximum)?/i,
    /(?:must be <=|tokens allowed \(|exceeds the limit of|model token limit:) ?(\d+)/i,
  ],
  filtered: [
    /^(content_filter|content_policy_violation|data_inspection_failed|1301)\b/,
    /content (management|safety|usage) polic(y|ies)|responsible ai polic/i,
  ],
  // Groq.
  failed: [/^tool_use_failed\b/, /failed to call a function/i],
  format: [
    /\bgrammar\b/i,
    /json.?schema (contains features|conversion failed|is (invalid|not (valid|supported)))|invalid json.?schema/i,
    /(compile|convert|parse|unsupported|invalid)\b.{0,40}\b(json.?schema|regex|ebnf)\b/i,
  ],
  full: [
    /\bqueued?\b|\bbusy and cannot accept\b|\btoken backlog limit\b|\bworkers are busy\b|\brequest limit reached\b/i,
    /\baborted by a higher priority\b/i,
    // Ollama.
    /\bmaximum pending requests\b/i,
  ],
  operators: [
    // LiteLLM.
    /invalid model name passed in|no connected db/i,
    // OpenRouter, z.ai, Bedrock, DeepSeek, Mistral; and engines that answer 400 where others answer 404.
    /is not a valid model id|unknown model\b|provided model identifier is invalid|model not exist\b|^\S* ?invalid model:/i,
    /\bmodel [`'"][^`'"]{1,200}[`'"] (does not exist|not found)/i,
  ],
  unread: [
    { words: /^Failed to parse tools/, param: "tools" },
    {
      words:
        /^(Failed to parse (messages|tool call arguments)|Failed to (load|download) (image|audio|file)|(image|audio|video) input is not supported)/,
      param: "messages",
    },
  ],
  sentences: [],
};
