/**
 * POST /v1/completions: answers a prompt like a chat message, in the form of the completions API. A suffix counts as
 * part of the question.
 */
import { chatIn } from "./chat.ts";
import type { TokenLogprob } from "./logprobs.ts";
import { SimulatorRefusal } from "./refusal.ts";
import { isObject, type Json } from "./request.ts";

export const completions = chatIn({
  asked,
  written: (json) => JSON.stringify(written(JSON.parse(json) as Json)),
});

function asked(body: unknown): unknown {
  if (!isObject(body)) return body;
  const { prompt, suffix, logprobs, ...rest } = body;
  if (rest.echo === true)
    throw new SimulatorRefusal(400, "Simulator: 'echo' is not supported.", "invalid_value", "echo");
  const text = Array.isArray(prompt) ? prompt.join(" ") : prompt;
  const content = typeof suffix === "string" && suffix !== "" ? `${text} … ${suffix}` : text;
  const probabilities = typeof logprobs === "number" ? { logprobs: true, top_logprobs: logprobs } : {};
  return { ...rest, ...probabilities, messages: [{ role: "user", content }] };
}

function written({ choices, ...rest }: Json): Json {
  return { ...rest, object: "text_completion", choices: (choices as Json[]).map(choice) };
}

function choice({ index, delta, message, logprobs, finish_reason }: Json): Json {
  const { content } = (delta ?? message ?? {}) as { content?: string | null };
  return { text: content ?? "", index, logprobs: logprobsOf(logprobs), finish_reason };
}

function logprobsOf(logprobs: unknown): Json | null {
  if (!isObject(logprobs) || !Array.isArray(logprobs.content)) return null;
  const all = logprobs.content as TokenLogprob[];
  let offset = 0;
  return {
    tokens: all.map(({ token }) => token),
    token_logprobs: all.map(({ logprob }) => logprob),
    top_logprobs: all.map(({ top_logprobs }) =>
      Object.fromEntries(top_logprobs.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: all.map(({ token }) => {
      offset += token.length;
      return offset - token.length;
    }),
  };
}
