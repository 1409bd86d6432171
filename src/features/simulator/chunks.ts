/** Writes an answer as chat completion chunks, with the requested quirks (deviations that real engines show). */
import type { Quirk } from "./directives.ts";
import { logprobOf } from "./logprobs.ts";
import type { Choice, Part, SimulatedAnswer, Usage } from "./parts.ts";
import type { Json } from "./request.ts";

/** A chunk: the JSON to send, and the number of output tokens in it. */
export interface Chunk {
  json: string;
  tokens: number;
}

export type Call = Extract<Part, { kind: "call" }>;

export interface ChunkOptions {
  id: string;
  model: string;
  created_s: number;
  includeUsage: boolean;
  runningUsage: boolean;
  topLogprobs: number | null;
  tokensPerChunk: number;
  quirks: ReadonlySet<Quirk>;
  finishes: boolean;
  /** Rewrites the JSON of a chunk into the form of another API. */
  written?: (json: string) => string;
}

export function* chunks(answer: SimulatedAnswer, options: ChunkOptions): Generator<Chunk> {
  const { quirks } = options;
  const { id, created_s: created, model } = options;
  const envelope = { id, object: "chat.completion.chunk", created, model };
  const { prompt_tokens, prompt_tokens_details } = answer.usage;
  let made = 0;
  // The members that all chunks share are turned into JSON only once: for thousands of streams, writing them anew would
  // be most of the work.
  const head = `${JSON.stringify(envelope).slice(0, -1)},"choices":`;
  const tail = options.includeUsage ? ',"usage":null}' : "}";
  const chunk = (choices: Json[], tokens: number, usage: Usage | null): Chunk => {
    made += tokens;
    const json = head + JSON.stringify(choices);
    if (usage !== null) return { json: `${json},"usage":${JSON.stringify(usage)}}`, tokens };
    if (!options.runningUsage) return { json: json + tail, tokens };
    const total_tokens = prompt_tokens + made;
    const running = { prompt_tokens, completion_tokens: made, total_tokens, prompt_tokens_details };
    return { json: `${json},"usage":${JSON.stringify(running)}}`, tokens };
  };

  if (quirks.has("empty-choices-first")) yield chunk([], 0, null);
  const onFinish = quirks.has("usage-on-finish") && options.includeUsage ? answer.usage : null;
  const streams = answer.choices.map((choice, index) => choiceSteps(choice, index, options));
  for (const { step, isLast } of stepsInTurn(streams)) {
    yield chunk([step.choice], step.tokens, isLast ? onFinish : null);
  }
  if (!options.includeUsage || onFinish !== null) return;
  if (quirks.has("usage-after")) {
    const again = answer.choices.map((_, index) => ({ index, delta: {}, logprobs: null, finish_reason: null }));
    yield chunk(again, 0, answer.usage);
  } else yield chunk([], 0, answer.usage);
}

interface Step {
  choice: Json;
  tokens: number;
}

/** The steps of all choices, interleaved like those of an engine that generates its choices in parallel. */
function* stepsInTurn(streams: Generator<Step>[]): Generator<{ step: Step; isLast: boolean }> {
  let held: Step | null = null;
  for (const step of inTurn(streams)) {
    if (held) yield { step: held, isLast: false };
    held = step;
  }
  if (held) yield { step: held, isLast: true };
}

/** The first item of each row, then the second item of each row, until all rows have ended. */
function* inTurn<Item>(rows: Generator<Item>[]): Generator<Item> {
  for (let open = rows; open.length > 0; ) {
    const still: Generator<Item>[] = [];
    for (const row of open) {
      const { done, value } = row.next();
      if (done) continue;
      yield value;
      still.push(row);
    }
    open = still;
  }
}

function* choiceSteps(choice: Choice, index: number, options: ChunkOptions): Generator<Step> {
  const { quirks, finishes } = options;
  const step = (delta: Json, tokens: number, logprobs: Json | null = null): Step => ({
    choice: { index, delta: quirks.has("empties") ? { ...empties, ...delta } : delta, logprobs, finish_reason: null },
    tokens,
  });
  const finish_reason = finishes ? choice.finish : null;
  yield step({ role: "assistant", content: contentBefore(choice) }, 0);
  let held: Step | null = null;
  for (const [delta, tokens, logprobs] of deltas(choice, options)) {
    if (held) yield held;
    held = step(delta, tokens, logprobs);
  }
  if (held && quirks.has("text-with-finish")) {
    yield { ...held, choice: { ...held.choice, finish_reason } };
    return;
  }
  if (held) yield held;
  if (finish_reason !== null) yield { choice: { index, delta: {}, logprobs: null, finish_reason }, tokens: 0 };
}

/** The value of `content` before any text: null if the choice has a tool call or a refusal instead of a text. */
export function contentBefore(choice: Choice): "" | null {
  const kinds = choice.parts.map((part) => part.kind);
  return !kinds.includes("text") && (kinds.includes("call") || kinds.includes("refusal")) ? null : "";
}

const empties: Json = { role: "assistant", content: null, tool_calls: [] };

type Delta = [delta: Json, tokens: number, logprobs: Json | null];

function* deltas(choice: Choice, options: ChunkOptions): Generator<Delta> {
  const calls = choice.parts.filter((part) => part.kind === "call");
  for (const part of choice.parts) {
    // All calls of a choice are written at the position of the first call.
    if (part.kind !== "call") yield* textDeltas(part, options);
    else if (part === calls[0]) yield* callDeltas(calls, options);
  }
}

function* textDeltas(part: Exclude<Part, Call>, options: ChunkOptions): Generator<Delta> {
  const reasoning = options.quirks.has("reasoning-field") ? "reasoning" : "reasoning_content";
  const field = { text: "content", refusal: "refusal", reasoning }[part.kind];
  const top = part.kind === "text" ? options.topLogprobs : null;
  for (let at = 0; at < part.tokens.length; at += options.tokensPerChunk) {
    const pieces = part.tokens.slice(at, at + options.tokensPerChunk);
    const content = top === null ? null : pieces.map((piece, index) => logprobOf(piece, at + index, top));
    yield [{ [field]: pieces.join("") }, pieces.length, content && { content, refusal: null }];
  }
}

function* callDeltas(calls: Call[], options: ChunkOptions): Generator<Delta> {
  const { quirks } = options;
  if (quirks.has("two-calls-one-chunk")) {
    const whole = calls.map((call, index) => wholeCall(call, index, quirks));
    yield [{ tool_calls: whole }, calls.reduce((sum, call) => sum + call.tokens.length + 1, 0), null];
    return;
  }
  const rows = calls.map((call, index) => callFragments(call, index, options));
  if (quirks.has("interleaved-tools")) yield* inTurn(rows);
  else for (const row of rows) yield* row;
}

function* callFragments(call: Call, index: number, { quirks, tokensPerChunk }: ChunkOptions): Generator<Delta> {
  if (quirks.has("whole-tool-call")) {
    yield [{ tool_calls: [wholeCall(call, index, quirks)] }, call.tokens.length + 1, null];
    return;
  }
  yield [{ tool_calls: [fragment(call, index, "", true, quirks)] }, 1, null];
  for (let at = 0; at < call.tokens.length; at += tokensPerChunk) {
    const pieces = call.tokens.slice(at, at + tokensPerChunk);
    const again = quirks.has("repeated-ids");
    yield [{ tool_calls: [fragment(call, index, pieces.join(""), again, quirks)] }, pieces.length, null];
  }
}

/** A complete tool call as a single fragment. */
export function wholeCall(call: Call, index: number, quirks: ReadonlySet<Quirk>): Json {
  return fragment(call, index, call.tokens.join(""), true, quirks);
}

function fragment(call: Call, index: number, text: string, isNamed: boolean, quirks: ReadonlySet<Quirk>): Json {
  const place = quirks.has("index-missing") ? {} : { index: quirks.has("index-always-0") ? 0 : index };
  if (!isNamed) return { ...place, function: { arguments: text } };
  const identity = quirks.has("ids-missing") ? {} : { id: call.id };
  return { ...place, ...identity, type: "function", function: { name: call.name, arguments: text } };
}
