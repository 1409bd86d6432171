// What some cases want beside their `want`.

import type { Outcome } from "./service.ts";

type Further = (outcome: Outcome) => string[];

const tooLong: Further = ({ status, error }) =>
  status === 400 && (error.includes("context_length_exceeded") || error.includes("prompt is too long"))
    ? []
    : [`${status} ${error}, not too long`];

const byId: Record<string, Further> = {
  "O-02": ({ status, error }) =>
    status === 400 && /filter|policy/i.test(error)
      ? []
      : [`${status} ${error}: the filter's refusal, and it is not said`],
  "O-08": ({ status, error }) => (status >= 500 ? [] : [`${status} ${error}: the model failed, and not the client`]),
  "O-24": ({ end, text }) => (end === "fail" || text === "Four." ? [] : [`${end} with ${JSON.stringify(text)}`]),
  ...Object.fromEntries(
    ["vllm", "sglang-2", "tgi", "mistral", "gemini", "deepseek", "bedrock", "zai"].map((name) => [
      `O-19.${name}`,
      tooLong,
    ]),
  ),
  ...Object.fromEntries(
    ["F4-10", "F4-10.all-single-newlines"].map((id) => [
      id,
      (({ end, text }) =>
        end === "fail" || (end === "stop" && text === "Four degrees.")
          ? []
          : [`${end} with ${JSON.stringify(text)}`]) satisfies Further,
    ]),
  ),
};

export function furtherWants(id: string): Further | undefined {
  return Object.hasOwn(byId, id) ? byId[id] : undefined;
}
