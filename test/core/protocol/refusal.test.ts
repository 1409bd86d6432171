/**
 * Refusals of engines, as found in their issue trackers and sources, and the facts that are understood from them: that
 * the input is too long, how long it is, and which field is to blame.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault, type SaidOverflow } from "../../../src/core/inference/fault.ts";
import { inputTooLong, withOverflow } from "../../../src/core/inference/overflow.ts";
import { dialects } from "../../../src/core/protocol/dialects.ts";
import { compact, type JsonObject } from "../../../src/core/protocol/json.ts";
import { refusalFault as faultOf } from "../../../src/core/protocol/refusal.ts";
import { kindOfRefusal } from "../../../src/core/upstream/attempt.ts";
import { forAll } from "./for-all.ts";
import { type ClientName, callers, clientNames, type EngineName, engineNames, engines } from "./pairs/wires.ts";

interface Rendered {
  error: { message: string; param?: string | null };
}
const rendered = (caller: ClientName, fault: Fault) => callers[caller].codec.fault.encode(fault, "req_1") as Rendered;

/**
 * Errors by engine: each with its text, and with the numbers of tokens that the text gives for the input and for the
 * context, if any.
 */
const overflows: Record<string, [said: string | JsonObject, tokens?: number | undefined, context?: number]> = {
  vLLM: [
    {
      message:
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      type: "BadRequestError",
      code: 400,
    },
    112_946,
    16_384,
  ],
  "vLLM, of the cap": [
    "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 2778 input tokens (8000 > 4096 - 2778). None",
    2778,
    4096,
  ],
  "vLLM, with its parameter": [
    {
      message:
        "This model's maximum context length is 2048 tokens. However, your request has 3008 input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=3008)",
      param: "input_tokens",
    },
    3008,
    2048,
  ],
  "vLLM, which stops counting where it is too much": [
    "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=134145)",
    undefined,
    262_144,
  ],
  "vLLM, lately": [
    "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens.",
    202_753,
    202_752,
  ],
  "vLLM's core": [
    "The decoder prompt (length 25938) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    25_938,
    4096,
  ],
  "vLLM's core, of text and images": [
    "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
    25_938,
    4096,
  ],
  SGLang: ["The input (40000 tokens) is longer than the model's context length (32768 tokens).", 40_000, 32_768],
  "SGLang, with the completion": [
    "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 41000 tokens: 40000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    40_000,
    32_768,
  ],
  "llama.cpp": [
    {
      message: "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
      type: "exceed_context_size_error",
      code: 400,
      n_prompt_tokens: 14429,
      n_ctx: 8192,
    },
    14_429,
    8192,
  ],
  "llama.cpp, without the count": ["the request exceeds the available context size. try increasing the context size"],
  OpenAI: [
    {
      message:
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. Please reduce the length of the messages.",
      code: "context_length_exceeded",
    },
    4294,
    4097,
  ],
  "OpenAI, of a limit on input": [
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages.",
    289_650,
    272_000,
  ],
  "OpenAI, of completions": [
    "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
    3860,
    4097,
  ],
  "OpenAI, of Responses": [
    {
      message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
      code: "context_length_exceeded",
    },
  ],
  Anthropic: ["prompt is too long: 213462 tokens > 200000 maximum", 213_462, 200_000],
  "Anthropic, with the completion": [
    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
    178_959,
    200_000,
  ],
  OpenRouter: [
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one.",
    42_832,
    32_768,
  ],
  xAI: ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537_812, 131_072],
  Mistral: ["Prompt contains 65673 tokens, too large for model with 32768 maximum context length", 65_673, 32_768],
  Google: [
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    1_196_265,
    1_048_575,
  ],
  "text-generation-inference": [
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`",
    4000,
    4096,
  ],
  "LM Studio": [
    "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.",
    111_490,
    32_768,
  ],
  "LM Studio, of early 2026": ["Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 15_028, 7424],
  "LM Studio, lately": [
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
    13_055,
    4096,
  ],
  Ollama: ["prompt too long; exceeded max context length by 400 tokens"],
  "a Sluice": [
    {
      message:
        "This model's maximum context length is 4096 tokens, and the input of about 5000 tokens exceeds the context window. Please reduce the length of the messages.",
      code: "context_length_exceeded",
    },
    5000,
    4096,
  ],
  "llama.cpp, without words": [
    { type: "exceed_context_size_error", message: "", n_prompt_tokens: 5000, n_ctx: 4096 },
    5000,
    4096,
  ],
  "Mistral, with draft tokens": [
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    40_000,
    32_768,
  ],
  "TensorRT-LLM": [
    {
      object: "error",
      message: "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)",
      type: "BadRequestError",
      code: 400,
    },
    72_417,
    69_632,
  ],
  "TensorRT-LLM, with the completion": [
    "The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed max_seq_len (4096)",
    4000,
    4096,
  ],
  SiliconFlow: ["length of prompt_tokens (163280) must be less than max_seq_len (32768).", 163_280, 32_768],
  Copilot: ["prompt token count of 130000 exceeds the limit of 128000", 130_000, 128_000],
};

const refusalFault = (status: number, error: JsonObject) => faultOf(status, error, dialects.generic.refusals);

describe("an engine that finds the input too long", () => {
  test.each(Object.entries(overflows))("%s", (_, [said, tokens, context]) => {
    const fault = refusalFault(400, typeof said === "string" ? { message: said } : said);
    const { inputTokens, isAtLeast, contextTokens } = fault.details.overflow ?? {};
    expect(fault.code).toBe("context_length_exceeded");
    expect([isAtLeast ? undefined : inputTokens, contextTokens]).toEqual([tokens, context]);
  });

  test.each(clientNames)("tells a %s client both lengths, in whichever protocol it speaks", (caller) => {
    // The catalog's length and our estimate are numbers that no engine above gives, so the test notices if one of them
    // replaces an engine's.
    const [catalog, estimate] = [500, 10];
    for (const [name, [said, tokens, context]] of Object.entries(overflows)) {
      if (tokens === undefined || context === undefined) continue;
      for (const engine of engineNames) {
        const error = typeof said === "string" ? { message: said } : said;
        const fault = withOverflow(engines[engine].codec.fault.decode(400, { error }), catalog, estimate);
        const numbers = rendered(caller, fault).error.message.match(/\d+/g)?.map(Number);
        // If the input alone would fit, it was refused because of its output, and the client is told one token more
        // than the context.
        const told = [context, Math.max(tokens, context + 1)];
        expect([name, engine, ...(numbers ?? []).sort((a, b) => a - b)]).toEqual([name, engine, ...told]);
      }
    }
  });

  test("is not one that has had too many tokens in a minute", () => {
    expect(refusalFault(429, { message: "Too many tokens, please wait" }).code).toBe("capacity_exceeded");
  });

  test("gives no number that cannot be one", () => {
    for (const n_prompt_tokens of [-1, 0, 1.5, "many", {}, 1e12, Number.MAX_VALUE, null]) {
      const fault = refusalFault(400, { type: "exceed_context_size_error", message: "", n_prompt_tokens });
      expect(fault.details.overflow?.inputTokens).toBeUndefined();
    }
    const endless = refusalFault(400, { message: `prompt is too long: ${"9".repeat(2000)} tokens > 1 maximum` });
    expect(endless.details.overflow?.inputTokens).toBeUndefined();
  });

  test("never makes us say that the input would fit, and its numbers stand before ours", () => {
    const count = fc.integer({ min: 1, max: 1e9 });
    const maybe = fc.option(count, { nil: undefined });
    forAll([count, count, maybe, maybe, fc.boolean()], 100, (catalog, estimate, counted, context, isAtLeast) => {
      const said = compact({ inputTokens: counted, contextTokens: context, isAtLeast: isAtLeast ? true : undefined });
      const { overflow, body } = withOverflow(inputTooLong(said as SaidOverflow), catalog, estimate).details;
      const contextTokens = context ?? catalog;
      expect(overflow?.contextTokens).toBe(contextTokens);
      expect(overflow?.inputTokens).toBeGreaterThan(contextTokens);
      const least = isAtLeast ? Math.max(counted ?? 0, estimate) : (counted ?? 0);
      if (counted !== undefined && counted > contextTokens) expect(overflow?.inputTokens).toBe(least);
      else expect(overflow?.inputTokens).toBe(Math.max(estimate, contextTokens + 1));
      const isEngines = overflow?.inputTokens === counted && counted !== Math.max(estimate, contextTokens + 1);
      if (isEngines) expect(body?.input_tokens_by).toBe("engine");
      if (overflow?.inputTokens !== counted) expect(body?.input_tokens_by).toBe("service");
      expect(body?.context_tokens_by).toBe(context === undefined ? "catalog" : "engine");
    });
    const other = new Fault("overloaded", "Busy.");
    expect(withOverflow(other, 1, 1)).toBe(other);
  });

  test("behind LiteLLM says what the engine said", () => {
    const message =
      'litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: Hosted_vllmException - {"error":{"message":"This model\'s maximum context length is 16384 tokens. However, you requested 1000 output tokens and your prompt contains at least 156019 input tokens, for a total of at least 157019 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}';
    const fault = withOverflow(refusalFault(400, { message, code: "400" }), 200_000, 40_000);
    expect(fault.details).toMatchObject({
      overflow: { contextTokens: 16_384, inputTokens: 156_019 },
      body: { context_tokens_by: "engine", input_tokens_by: "engine" },
    });
  });
});

describe("a 400 that is not about the request", () => {
  test.each([
    { message: "Invalid model name passed in model=qwen. Call `/v1/models` to view available models for your key." },
    { message: "{'error': 'No connected db.'}", type: "no_db_connection" },
    { message: "qwen/qwen9 is not a valid model ID" },
    { code: "1211", message: "Unknown Model, please check the model code." },
    { message: "The provided model identifier is invalid." },
    { message: "Model Not Exist" },
    {
      type: "invalid_request_error",
      message: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.",
    },
    { message: "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC." },
    { message: "You have reached your specified workspace API usage limits." },
    { message: "This organization has been disabled." },
    { code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" },
    { code: 400, message: "API key expired. Please renew the API key.", status: "INVALID_ARGUMENT" },
    { message: "Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai." },
    { code: "Arrearage", message: "Access denied, please make sure your account is in good standing." },
    {
      code: "400",
      message:
        'litellm.BadRequestError: AnthropicException - b\'{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}\'',
    },
  ])("is the operator's to correct: %j", (error) => {
    const fault = refusalFault(400, error);
    expect([fault.code, fault.details.retryAfterSeconds, kindOfRefusal(400, fault)]).toEqual([
      "upstream_unavailable",
      120,
      "refused",
    ]);
  });

  test("stays the client's if it only quotes such words", () => {
    const message = "messages.1.content: Input should be a valid string, got 'Incorrect API key provided: why?'";
    expect(refusalFault(400, { message }).code).toBe("invalid_value");
  });

  test.each([
    { code: "tool_use_failed", message: "Failed to call a function." },
    {
      code: "json_validate_failed",
      message: "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
    },
    {
      code: "400",
      message:
        'litellm.BadRequestError: GroqException - {"error":{"message":"Failed to generate JSON. Please adjust your prompt.","code":"json_validate_failed"}}',
    },
  ])("is the model's, which another attempt may do better: %j", (error) => {
    const fault = refusalFault(400, error);
    expect([fault.code, kindOfRefusal(400, fault)]).toEqual(["upstream_unavailable", "failed"]);
  });

  test.each([
    { message: "Grammar error: unexpected token" },
    { message: "The provided JSON schema contains features not supported by xgrammar." },
  ])("names the format that cannot be enforced: %j", (error) =>
    expect(refusalFault(400, error).details.param).toBe("response_format"),
  );
});

describe("a refusal whose status says something else than its words", () => {
  const ends = (status: number, error: JsonObject) => {
    const fault = refusalFault(status, error);
    return [fault.code, kindOfRefusal(status, fault)];
  };
  const contentSafe =
    "Content violates usage guidelines. Team: 1, API key ID: 2, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO";

  test.each([
    { message: contentSafe },
    {
      code: 403,
      message: 'openai/gpt-5 requires moderation on OpenRouter. Your input was flagged for "violence".',
      metadata: { reasons: ["violence"], flagged_input: "..." },
    },
  ])("403 for flagged content is the client's to change, and no wrong key: %j", (error) => {
    expect(ends(403, error)).toEqual(["invalid_value", "rejected"]);
    expect(refusalFault(403, error).message).toContain("its content, which a content policy filters");
  });

  test("any other 403 is about the operator's key", () => {
    expect(ends(403, { message: "Your account was suspended because it violates usage guidelines." })).toEqual([
      "upstream_unavailable",
      "refused",
    ]);
  });

  const quota = "You exceeded your current quota, please check your plan and billing details.";
  test.each([
    {
      code: "insufficient_quota",
      message: `${quota} For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.`,
    },
    {
      type: "exceeded_current_quota_error",
      message: "Your account org-1 <ak-2> is suspended, please check your plan and billing details",
    },
    { code: "1113", message: "Insufficient balance or no resource package. Please recharge." },
  ])("429 for an account without money lasts until the operator pays: %j", (error) => {
    expect(ends(429, error)).toEqual(["upstream_unavailable", "refused"]);
    expect(refusalFault(429, error).details.retryAfterSeconds).toBe(120);
  });

  test.each([
    { code: "insufficient_quota", message: `${quota} For details, see: https://help.aliyun.com/zh/model-studio` },
    { code: "insufficient_quota", message: quota },
    { code: 429, message: `${quota} For more information on this error, head to: https://ai.google.dev/gemini-api` },
    { code: "1302", message: "Rate limit reached for requests" },
  ])("429 for the tokens of a minute is that the engine is full: %j", (error) => {
    expect(ends(429, error)).toEqual(["capacity_exceeded", "busy"]);
  });

  test("413 for the tokens of a minute is that the engine is full, and another 413 is the client's", () => {
    const message =
      "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.";
    expect(ends(413, { message, type: "tokens", code: "rate_limit_exceeded" })).toEqual(["capacity_exceeded", "busy"]);
    expect(ends(413, { message: "The body is too large." })).toEqual(["invalid_value", "rejected"]);
  });

  test("500 for a context that llama.cpp's slots share is that the engine is full: the input may be short", () => {
    const shared = { code: 500, type: "server_error", message: "Context size has been exceeded." };
    expect(ends(500, shared)).toEqual(["capacity_exceeded", "busy"]);
    const tooLong = { ...shared, type: "exceed_context_size_error" };
    expect(ends(400, tooLong)).toEqual(["context_length_exceeded", "too_long"]);
    // This error of LM Studio comes inside a stream.
    expect(ends(500, { message: "Context size has been exceeded." })[0]).toBe("context_length_exceeded");
  });
});

test("clients know our words for it by the patterns in their sources", () => {
  const fault = withOverflow(inputTooLong({ inputTokens: 5000 }), 4096, 100);
  const chat = rendered("chat", fault).error.message;
  const messages = rendered("messages", fault).error.message;
  expect(rendered("responses", fault).error.message).toBe(chat);
  // The pattern of Claude Code 2.1.329 is anchored; with the next one it computes by how much to shorten the
  // conversation.
  expect(messages).toMatch(/^prompt is too long: \d+ tokens > \d+ maximum$/);
  expect(/prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)/i.exec(messages)?.slice(1)).toEqual(["5000", "4096"]);
  // The patterns of pi (@mariozechner/pi-ai 0.73.1, utils/overflow).
  expect(messages).toMatch(/prompt is too long/i);
  for (const known of [
    /exceeds the context window/i,
    /reduce the length of the messages/i,
    /maximum context length is \d+ tokens/i,
  ])
    expect(chat).toMatch(known);
  for (const message of [chat, messages]) expect(message).not.toMatch(/rate limit|too many requests/i);
  // The pattern of litellm 1.106.2 and langchain-openai 1.7.3; both are run by `npm run test:clients -- litellm` and
  // `-- langchain`.
  expect(chat.toLowerCase()).toContain("this model's maximum context length is");
});

describe("a field that an engine refuses is named as its caller names it", () => {
  /**
   * The engine's error, and the field that each kind of client is told; absent if the field has no certain name in that
   * client's protocol.
   */
  const blamed: Record<EngineName, [error: object, told: Partial<Record<ClientName, string>>][]> = {
    chat: [
      [{ param: "temperature" }, { chat: "temperature", messages: "temperature", responses: "temperature" }],
      [{ param: "max_tokens" }, { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" }],
      [
        { param: "max_completion_tokens" },
        { chat: "max_completion_tokens", messages: "max_tokens", responses: "max_output_tokens" },
      ],
      [{ param: "messages[2].content" }, { chat: "messages[2].content", messages: "messages", responses: "input" }],
      [{ param: "stop" }, { chat: "stop", messages: "stop_sequences" }],
      [{ param: "response_format.json_schema" }, { chat: "response_format.json_schema", responses: "text" }],
      [{ param: "seed" }, { chat: "seed" }],
    ],
    messages: [
      [
        { message: "max_tokens: 99999 > 8192, which is the maximum allowed" },
        { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" },
      ],
      [
        { message: "messages.3.content.0.text: text content blocks must be non-empty" },
        { chat: "messages", messages: "messages[3].content[0].text", responses: "input" },
      ],
      [
        { message: "`temperature` may only be set to 1 when thinking is enabled." },
        { chat: "temperature", messages: "temperature", responses: "temperature" },
      ],
      [{ message: "stop_sequences: each must have a letter" }, { chat: "stop", messages: "stop_sequences" }],
      [{ message: "system: too long" }, { messages: "system" }],
      [
        { message: "tools[0].input_schema: bad" },
        { chat: "tools", messages: "tools[0].input_schema", responses: "tools" },
      ],
    ],
    responses: [
      [{ param: "input[2].content[0]" }, { chat: "messages", messages: "messages", responses: "input[2].content[0]" }],
      [{ param: "max_output_tokens" }, { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" }],
      [{ param: "text.format.schema" }, { chat: "response_format", responses: "text.format.schema" }],
      [{ param: "reasoning.effort" }, { chat: "reasoning_effort", responses: "reasoning.effort" }],
      [{ param: "instructions" }, { responses: "instructions" }],
    ],
  };
  const cases = engineNames.flatMap((engine) =>
    blamed[engine].flatMap(([error, told]) =>
      clientNames.map((caller) => [engine, caller, error, told[caller] ?? null] as const),
    ),
  );

  test.each(cases)("a %s engine's, to a %s client: %j", (engine, caller, error, field) => {
    const fault = engines[engine].codec.fault.decode(400, { type: "error", error: { message: "SECRET", ...error } });
    const told = rendered(caller, fault).error;
    const because = field === null ? ". Change the request's content" : ` because of '${field}'. Change that value`;
    const path = caller === "messages" && field !== null ? `${field}: ` : "";
    expect(told.message).toBe(
      `${path}The model's engine cannot serve this request${because}, or choose another model.`,
    );
    if (caller !== "messages") expect(told.param).toBe(field);
  });

  test("and nothing else that an engine says is", () => {
    for (const engine of engineNames) {
      for (const error of [
        { param: "model", message: "model: secret-engine does not exist" },
        { param: "secret_field", message: "secret_field: bad" },
        { param: `messages${"[1]".repeat(100)}`, message: `messages${"[1]".repeat(100)}: bad` },
        { param: 5, message: "The model says that messages: no" },
      ]) {
        const fault = engines[engine].codec.fault.decode(400, { error });
        expect(fault.details.param).toBeUndefined();
      }
    }
  });
});
