/** Patterns of error messages that engines are known to send: docs/engines.md, What refusals mean. */
import type { Refusals } from "../dialect.ts";

export const anyRefusals: Refusals = {
  tooLong: [
    /maximum context|context (length|window|size|limit)|max(imum)?_?model_?len|longer than the (model|maximum)/i,
    /exceeds? the (available )?context|prompt (is )?too long|too many (input )?tokens|maximum (prompt|input) length/i,
    /input tokens exceed|input token count|`inputs` tokens \+|\bn_ctx\b|context the overflows/i,
    // Messages of LiteLLM, Bedrock, z.ai, DashScope, Moonshot and Copilot.
    /ContextWindowExceeded|input is too long|prompt exceeds max length|range of input length should be/i,
    /exceeded model token limit|prompt token count of \d+ exceeds/i,
    // Messages of TensorRT-LLM and SiliconFlow.
    /\b(should not exceed|must be less than) max_(seq_len|num_tokens)\b/i,
    // llama.cpp sends this message in answer to an embedding request, with status 500.
    /input \(\d+ tokens\) is too large to proc/i,
  ],
  inputTokens: [
    /(?<!at least )\b(\d+) (?:tokens )?(?:in (?:the messages|(?:your|the) prompt)|input tokens|tokens from the input|of text input|`inputs` tokens)/i,
    /(?:messages resulted in|input of about|request contains|prompt contains|keep the first) (\d+) tokens/i,
    /(?:prompt is too long:|context limit:) (\d+) (?:tokens >|\+ \d+ >)/i,
    /(?:request|input) \((\d+) tokens\)/i,
    /(?:sum of prompt length|prompt_tokens) \((\d+)/i,
    /(?:total length|prompt \(length|token count \()\s?(\d+)\)/i,
    // LM Studio asks its engine to keep the whole input, so this number is the input's length.
    /\bn_keep(?: \(|: )(\d+)/i,
    /token count of (\d+)/i,
  ],
  inputTokensAtLeast: [/\bat least (\d+) input tokens/i, /\binput about (\d+)/i],
  contextTokens: [
    /maximum (?:context|prompt|input|model) length(?: is|:| of)? (\d+)/i,
    /(?:context (?:length|size|window)|available context size) \((\d+)/i,
    /context (?:length|size|window|limit) (?:of only|of|is|:)? ?(\d+)/i,
    /\bn_ctx(?: \(|: )(\d+)/i,
    /(\d+) maximum context length/i,
    /max_model_len (?:of |is |= ?)?(\d+)/i,
    /(?:tokens|context limit: \d+ \+ \d+) > (\d+)/i,
    /current batch size: (\d+)/i,
    /\bmax_(?:seq_len|num_tokens) \((\d+)/i,
    /(?:must be <=|tokens allowed \(|exceeds the limit of|configured limit of|model token limit:) ?(\d+)/i,
  ],
  // Messages of Groq.
  failed: [/^(tool_use|json_validate)_failed\b/, /failed to call a function/i, /failed to generate JSON\b/i],
  format: [
    /\bgrammar\b/i,
    /json.?schema (contains features|conversion failed|is (invalid|not (valid|supported)))|invalid json.?schema/i,
    /(compile|convert|parse|unsupported|invalid)\b.{0,40}\b(json.?schema|regex|ebnf)\b/i,
  ],
  full: [
    /\bqueued?\b|\bbusy and cannot accept\b|\btoken backlog limit\b|\bworkers are busy\b|\brequest limit reached\b/i,
    /\baborted by a higher priority\b/i,
    // A message of Ollama.
    /\bmaximum pending requests\b/i,
  ],
  operators: [
    // Messages of LiteLLM.
    /invalid model name passed in|no connected db/i,
    // Messages about an unknown model: of OpenRouter, z.ai, Bedrock, DeepSeek and Mistral; and of engines that answer
    // 400 where others answer 404.
    /is not a valid model id|unknown model\b|provided model identifier is invalid|model not exist\b|^\S* ?invalid model:/i,
    /\bmodel [`'"][^`'"]{1,200}[`'"] (does not exist|not found)/i,
    // Messages about the operator's account or key: of Anthropic, Gemini, xAI and DashScope, also behind LiteLLM.
    /^\S* ?(litellm\..{0,200})?(your credit balance is too low|you have reached your specified (workspace )?api usage limits|this organization has been disabled)/is,
    /^\S* ?(litellm\..{0,200})?(api key (not valid|expired|not found)|incorrect api key provided|arrearage\b|access denied, please make sure your account is in good standing)/is,
  ],
  otherwise: [
    // Messages about content, not about the operator's key: of OpenRouter and xAI.
    { status: 403, words: /\brequires moderation on\b.*\binput was flagged\b/i, means: 400 },
    { status: 403, words: /^\S* content violates usage guidelines\b/i, means: 400 },
    // A message of Groq about a limit of tokens per minute.
    { status: 413, words: /\bon tokens per minute \(TPM\)/i, means: 429 },
    // Messages about an account without money: of OpenAI, and of Moonshot and z.ai. DashScope and Gemini use OpenAI's
    // words for a limit of tokens per minute, but with other URLs in them.
    { status: 429, words: /exceeded your current quota\b.*platform\.openai\.com/is, means: 402 },
    { status: 429, words: /\binsufficient balance\b|\baccount\b.{0,120} is suspended\b/i, means: 402 },
    // The message of llama.cpp if its running requests together fill the context that its slots share. LM Studio sends
    // the same words, without the error type, about an input that is too long.
    { status: 500, words: /^server_error context size has been exceeded\.?$/i, means: 429 },
  ],
  unread: [
    { words: /^Failed to parse tools/, param: "tools" },
    {
      words:
        /^(Failed to parse (messages|tool call arguments)|Failed to (load|download) (image|audio|file)|(image|audio|video) input is not supported)/,
      param: "messages",
    },
  ],
  things: [
    {
      words:
        /content (management|safety|filter)|content_(filter|policy)|usage polic|safety (filter|system)|data_inspection_failed|\b1301\b|input was flagged|violates usage guidelines/i,
      thing: "its content, which a content policy filters",
    },
    { words: /grammar|json.?schema|response_format|structured output|guided/i, thing: "the form of the answer" },
    {
      words: /chat template|roles? must alternate|alternate user|conversation roles|jinja/i,
      thing: "the order of its messages",
    },
    { words: /\b(image|vision|multimodal|audio|video|file input)s?\b/i, thing: "an image, a file or sound" },
    { words: /\btools?\b|\bfunctions?\b|tool_choice/i, thing: "its tools" },
    { words: /reasoning|thinking|\beffort\b/i, thing: "its reasoning" },
    { words: /logprobs|log probabilit/i, thing: "log probabilities" },
  ],
  sentences: [
    // Sentences from runs of vLLM 0.32.0.
    "{field} must be in [{number}, {number}], got {number}",
    "{field} must be at least {number}, got {number}",
    "{field} must be non-negative, got {number}",
    "The tool specified in `tool_choice` does not match any of the specified `tools`",
    // Sentences from recorded answers of OpenAI.
    "Invalid '{field}': decimal above maximum value. Expected a value <= {number}, but got {number} instead",
    "Invalid '{field}': decimal below minimum value. Expected a value >= {number}, but got {number} instead",
    "Invalid '{field}': integer above maximum value. Expected a value <= {number}, but got {number} instead",
    "Invalid '{field}': integer below minimum value. Expected a value >= {number}, but got {number} instead",
    "Invalid '{field}': array too long. Expected an array with maximum length {number}, but got an array with length {number} instead",
    "Invalid '{field}': string too long. Expected a string with maximum length {number}, but got a string with length {number} instead",
    "Unsupported value: '{field}' does not support {number} with this model",
    "Unsupported parameter: '{field}' is not supported with this model",
    // Sentences from recorded answers of Anthropic.
    "{field}: {number} > {number}, which is the maximum allowed number of output tokens for {model}",
  ],
};
