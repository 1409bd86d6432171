// Additional checks of the outcomes of some cases, which `want` cannot express.

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

/**
 * Checks that the error has this status (or 200, if a stream had already started), and does not contain the engine's
 * error message.
 */
const fails =
  (wanted: number, engineWords: RegExp): Further =>
  ({ mode, status, error }) =>
    mode === "p" || ((status === wanted || (mode === "s" && status === 200)) && !engineWords.test(error))
      ? []
      : [`${status} ${error}, not ${wanted}`];

/** Checks that this field of every request to the engine has this value. */
const sends =
  (field: string, wanted: unknown): Further =>
  ({ status, asked }) =>
    status === 200 && asked.length > 0 && asked.every((body) => body[field] === wanted)
      ? []
      : [`${status}, and the engine got ${JSON.stringify(asked.map((body) => body[field]))} as ${field}`];

const byId: Record<string, Further> = {
  "O-02": ({ status, error }) =>
    status === 400 && /filter|policy/i.test(error)
      ? []
      : [`${status} ${error}: the filter's refusal, and it is not said`],
  "O-07": fails(429, /Rate limit/),
  "O-12": fails(503, /context shift/),
  "O-12.done": fails(503, /context shift/),
  "O-27": fails(503, /credit/),
  "O-28": fails(503, /JSON/),
  "O-29": fails(429, /TPM/),
  "F4-15.temperature": ({ status, error }) =>
    status === 200 || error.includes("temperature") ? [] : [`${status} ${error}, without the field's name`],
  // The dialect of this engine has no word for the effort `max`, so it gets `high`: docs/protocols.md.
  "F4-16": sends("reasoning_effort", "high"),
  "F4-16.high": sends("reasoning_effort", "high"),
  "F4-16.none": sends("reasoning_effort", "none"),
  "F4-22": ({ asked }) => (JSON.stringify(asked).includes('"ttl"') ? ["the engine got a ttl"] : []),
  "F4-22.output_config": sends("output_config", undefined),
  "F4-22.context_management": sends("context_management", undefined),
  "F4-23": ({ status, error }) =>
    status === 200 || (status === 400 && error.includes("stop_sequences")) ? [] : [`${status} ${error}`],
  "O-08": ({ status, error }) => (status >= 500 ? [] : [`${status} ${error}: the model failed, and not the client`]),
  "O-24": ({ end, text }) => (end === "fail" || text === "Four." ? [] : [`${end} with ${JSON.stringify(text)}`]),
  "F4-10": failsOrSays("Four degrees."),
  "F4-10.all-single-newlines": failsOrSays("Four degrees."),
};
const engines = ["vllm", "sglang-2", "tgi", "mistral", "gemini", "deepseek", "bedrock", "zai"];
for (const name of engines) byId[`O-19.${name}`] = tooLong;

/** The cases that are not run here, with the tests that cover them. */
export const elsewhere: Readonly<Record<string, string>> = {
  "F4-08": "a second turn: test/core/protocol/carried.test.ts",
  "F4-08.reasoning_details": "a second turn: test/core/protocol/carried.test.ts",
  "F4-12": "half a character in the request: test/core/upstream/dialects.test.ts",
  "F4-12.tool-description": "half a character in the request: test/core/upstream/dialects.test.ts",
  "F4-12.messages-engine": "half a character in the request: test/core/upstream/dialects.test.ts",
  "F4-26": "paths that are not served: test/features/unserved/unserved.test.ts",
};

export function furtherWants(id: string): Further | undefined {
  return Object.hasOwn(byId, id) ? byId[id] : undefined;
}
