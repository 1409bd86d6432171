/** Questions (probe requests) about texts: streams, counts, caps, stop sequences, formats of answers, pictures. */
import type { Turn } from "../../core/inference/request.ts";
import { samplingFields } from "../../core/protocol/engine-fields.ts";
import { type Asking, answerText, callsOf, type Heard, says } from "./asking.ts";
import { type CheckQuestion, hello, type Judged, no, taken, unanswered, unknown, yes } from "./question.ts";

const chat = ["openai-chat"] as const;

const helloStreamed = (engine: Asking) => engine.once("hello, streamed", () => engine.put({ stream: true }));
const counting = says("Count.");

const text: CheckQuestion = {
  name: "text",
  does: "answers",
  isShort: true,
  ask: async (engine) => taken(await hello(engine)),
};

const stream: CheckQuestion = {
  name: "stream",
  does: "streams its answers",
  ask: async (engine) => {
    const heard = await helloStreamed(engine);
    if (heard.batches > 1) return yes(`${heard.batches} pieces`);
    return unanswered(heard) ?? unknown("one piece: the answer was short, or came at once");
  },
};

const reports = (name: string, does: string, heardOf: (engine: Asking) => Promise<Heard>): CheckQuestion => ({
  name,
  does,
  ask: async (engine) => {
    const heard = await heardOf(engine);
    const { promptTokens, outputTokens } = heard;
    const counts = promptTokens === null ? no("no usage") : yes(`${promptTokens} in, ${outputTokens} out`);
    return unanswered(heard) ?? counts;
  },
});

const running = (form: "usage" | "timings", does: string): CheckQuestion => ({
  name: `running_usage_${form}`,
  does,
  protocols: chat,
  isShort: true,
  ask: async (engine) => {
    const heard = await engine.put({ stream: true, turns: [counting] }, { runningUsage: form });
    if (heard.reports > 2) return yes(`${heard.reports} reports in ${heard.batches} pieces`);
    return unanswered(heard) ?? (heard.batches > 2 ? no("counts at the end alone") : unknown("too few pieces"));
  },
});

const cap_tokens = 8;

/** Asks for an answer with a low cap in this field. A longer answer shows that the field is not read. */
async function capped(engine: Asking, cap: "max_tokens" | "max_completion_tokens"): Promise<Judged> {
  const dialect = { ...engine.dialect, cap };
  const heard = await engine.put({ turns: [counting], outputTokens_max: cap_tokens }, { dialect });
  if (!heard.result) return unanswered(heard)!;
  if (heard.outputTokens !== null && heard.outputTokens > cap_tokens)
    return no(`${heard.outputTokens} tokens where ${cap_tokens} are allowed`);
  const isEnded = heard.result.reason === "length" || heard.outputTokens === cap_tokens;
  return isEnded ? yes("the answer ends there") : unknown("the answer ended by itself");
}

const cap = (name: "max_tokens" | "max_completion_tokens"): CheckQuestion => ({
  name: `cap_${name}`,
  does: `ends an answer at ${name}`,
  protocols: chat,
  isShort: true,
  ...(name === "max_tokens" ? { expects: (dialect) => (dialect.cap === name ? "yes" : "unknown") } : {}),
  ask: (engine) => capped(engine, name),
});

const stop: CheckQuestion = {
  name: "stop",
  does: "ends an answer before a stop sequence",
  protocols: ["openai-chat", "anthropic-messages"],
  ask: async (engine) => {
    const whole = await engine.put({ turns: [counting] });
    const words = answerText(whole).trim().split(/\s+/);
    const word = words.slice(2).find((one) => one.length > 2 && words.indexOf(one) > 1);
    if (word === undefined) return unanswered(whole) ?? unknown("its answer has too few words");
    const heard = await engine.put({ turns: [counting], stop: [word] });
    if (!heard.result) return unanswered(heard)!;
    const said = answerText(heard);
    if (said.includes(word)) return no(`goes on after '${word}'`);
    return answerText(whole).startsWith(said.trimEnd())
      ? yes(`ends before '${word}'`)
      : unknown("answers otherwise each time");
  },
};

const stops: CheckQuestion = {
  name: "stops",
  does: "takes more than four stop sequences",
  protocols: chat,
  isShort: true,
  expects: ({ bounds }) => (bounds.stops_max > 4 ? "yes" : "no"),
  ask: async (engine) => {
    const bounds = { ...engine.dialect.bounds, stops_max: Number.POSITIVE_INFINITY };
    const stop = ["<a>", "<b>", "<c>", "<d>", "<e>"];
    return taken(await engine.put({ stop }, { dialect: { ...engine.dialect, bounds } }), "takes five");
  },
};

/**
 * A question for each sampling field: does the engine read it? An engine that refuses a value of the wrong type reads
 * the field.
 */
const sampling = samplingFields.map(
  (name): CheckQuestion => ({
    name: `field_${name}`,
    does: `reads ${name}`,
    protocols: chat,
    isShort: true,
    expects: (dialect) => (dialect.sampling.includes(name) ? "yes" : "unknown"),
    ask: async (engine) => {
      const plain = await hello(engine);
      if (!plain.result) return unanswered(plain)!;
      const { end } = await engine.put({ extra: { [name]: "no number and no object" } });
      // A refusal proves nothing if the service refuses every unknown field. So a field with a made-up name is tried,
      // too.
      if (end.kind !== "rejected") return unknown(`takes any value (${end.kind})`);
      const strict = await engine.once("a field that nobody has", () => engine.put({ extra: { sluice_check: "x" } }));
      return strict.end.kind === "rejected" ? no("refuses fields that it does not know") : yes("refuses a wrong value");
    },
  }),
);

const effort = (level: "low" | "max"): CheckQuestion => ({
  name: `effort_${level}`,
  does: `takes the effort ${level}`,
  expects: (dialect) => (dialect.effort[level] === null ? "unknown" : "yes"),
  ask: async (engine) => {
    const word = engine.dialect.effort[level];
    if (word === null) return unknown("the dialect has no word for it");
    return taken(await engine.put({ reasoning: { effort: level } }), `takes '${word}'`);
  },
});

const answer = "indigo";
const schema = {
  type: "object",
  properties: { color: { type: "string", enum: [answer] } },
  required: ["color"],
  additionalProperties: false,
};

const form = (name: string, does: string, wanted: "json_schema" | "json_object"): CheckQuestion => ({
  name,
  does,
  isShort: true,
  protocols:
    wanted === "json_schema"
      ? ["openai-chat", "anthropic-messages", "openai-responses"]
      : ["openai-chat", "openai-responses"],
  ask: async (engine) => {
    const format =
      wanted === "json_object"
        ? ({ kind: "json_object" } as const)
        : ({ kind: "json_schema", name: "color", schema, strict: true } as const);
    const heard = await engine.put({ turns: [says("Name a color, as JSON.")], format });
    if (!heard.result) return unanswered(heard)!;
    const fits =
      wanted === "json_object" ? /^\s*\{.*\}\s*$/s : new RegExp(`^\\s*\\{\\s*"color"\\s*:\\s*"${answer}"\\s*\\}\\s*$`);
    if (fits.test(answerText(heard))) return yes("the answer has that form");
    const isCut = heard.result.reason === "length" && /^\s*(\{|$)/.test(answerText(heard));
    return isCut ? unknown("the answer was cut") : no("the answer has another form");
  },
});

const logprobs: CheckQuestion = {
  name: "logprobs",
  does: "gives log probabilities",
  protocols: ["openai-chat", "openai-responses"],
  isShort: true,
  ask: async (engine) => {
    const heard = await engine.put({ turns: [counting], logprobs: { top: 2 } });
    if (!heard.result) return unanswered(heard)!;
    const tokens = heard.result.parts.reduce((sum, part) => sum + (part.logprobs?.length ?? 0), 0);
    if (tokens > 0) return yes(`${tokens} tokens`);
    return answerText(heard) === "" ? unknown("no text in its answer") : no("none in its answer");
  },
};

/** A picture of 32 by 32 gray pixels. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABC" +
  "AAAfN5c2AAAAAABJRU5ErkJggg==";

const image: CheckQuestion = {
  name: "picture",
  does: "reads a picture",
  isShort: true,
  ask: async (engine) => {
    const plain = await engine.put({ turns: [says("What is this?")] });
    const turn = says("What is this?");
    turn.parts.unshift({ kind: "image", url: picture });
    const heard = await engine.put({ turns: [turn] });
    if (!heard.result) return unanswered(heard)!;
    if (heard.promptTokens === null || plain.promptTokens === null)
      return unknown("taken, and no usage tells whether read");
    const grown = heard.promptTokens - plain.promptTokens;
    return grown > 8
      ? yes(`the prompt grows by ${grown} tokens`)
      : no(`taken, and the prompt grows by ${grown} tokens`);
  },
};

const greeting: Turn = { role: "assistant", parts: [{ kind: "text", text: "Hello." }] };

const instructions: CheckQuestion = {
  name: "instructions_inside",
  does: "takes instructions in the middle of a conversation",
  ask: async (engine) => {
    const inside: Turn = { role: "system", parts: [{ kind: "text", text: "Be brief." }] };
    return taken(await engine.put({ turns: [says("Say hello."), greeting, inside, counting] }));
  },
};

const continued: CheckQuestion = {
  name: "conversation",
  does: "takes a conversation of several turns",
  ask: async (engine) => {
    const heard = await engine.put({ turns: [says("Say hello."), greeting, says("And goodbye.")] });
    return callsOf(heard).length > 0 ? no("calls a tool that there is not") : taken(heard);
  },
};

export const textQuestions: readonly CheckQuestion[] = [
  text,
  stream,
  continued,
  instructions,
  reports("usage", "counts tokens", hello),
  reports("usage_streamed", "counts tokens in a stream", helloStreamed),
  running("usage", "counts on every chunk (continuous_usage_stats)"),
  running("timings", "counts on every chunk (timings_per_token)"),
  cap("max_tokens"),
  cap("max_completion_tokens"),
  stop,
  stops,
  ...sampling,
  effort("low"),
  effort("max"),
  form("schema", "keeps to a schema", "json_schema"),
  form("json", "keeps to JSON", "json_object"),
  logprobs,
  image,
];
