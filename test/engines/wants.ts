// Further checks of the outcomes of some cases, beside those of their `want`.

import type { Outcome } from "./service.ts";

type Further = (outcome: Outcome) => string[];

const tooLong: Further = ({ status, error }) =>
  status === 400 && (error.includes("context_length_exceeded") || error.includes("prompt is too long"))
    ? []
    : [`${status} ${error}, not too long`];

function failsOrSays(whole: string): Further {
  return ({ end, text }) =>
    end === "fail" || (end === "stop" && text === whole) ? [] : [`${end} with ${JSON.stringify(text)}`];
}

const byId: Record<string, Further> = {
  "O-02": ({ status, error }) =>
    status === 400 && /filter|policy/i.test(error)
      ? []
      : [`${status} ${error}: the filter's refusal, and it is not said`],
  "O-08": ({ status, error }) => (status >= 500 ? [] : [`${status} ${error}: the model failed, and not the client`]),
  "O-24": ({ end, text }) => (end === "fail" || text === "Four." ? [] : [`${end} with ${JSON.stringify(text)}`]),
  "F4-10": failsOrSays("Four degrees."),
  "F4-10.all-single-newlines": failsOrSays("Four degrees."),
};
const engines = ["vllm", "sglang-2", "tgi", "mistral", "gemini", "deepseek", "bedrock", "zai"];
for (const name of engines) byId[`O-19.${name}`] = tooLong;

export function furtherWants(id: string): Further | undefined {
  return Object.hasOwn(byId, id) ? byId[id] : undefined;
}
