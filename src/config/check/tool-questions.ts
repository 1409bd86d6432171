/** Questions (probe requests) about tools, and about reasoning that is sent back within a turn of tool calls. */
import type { AssistantPart, InferenceRequest, Tool, Turn } from "../../core/inference/request.ts";
import type { Dialect, ReasoningField } from "../../core/protocol/dialect.ts";
import { type Asking, answerText, callsOf, type Heard, says } from "./asking.ts";
import { type CheckQuestion, hello, type Judged, no, taken, unanswered, unknown, yes } from "./question.ts";

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools: Tool[] = [
  { kind: "function", name: "weather", description: "The weather.", parameters },
  { kind: "function", name: "time", description: "The time.", parameters },
];
const question = says("Weather and time in Oslo?");
const asked: Partial<InferenceRequest> = { tools, turns: [question] };

const calling = (engine: Asking) => engine.once("call", () => engine.put(asked));

const call: CheckQuestion = {
  name: "call",
  does: "calls a tool",
  isShort: true,
  ask: async (engine) => {
    const heard = await calling(engine);
    const calls = callsOf(heard);
    if (calls.length > 0) return yes(calls.join(", "));
    return unanswered(heard) ?? unknown("the model called none");
  },
};

const twoCalls: CheckQuestion = {
  name: "two_calls",
  does: "calls two tools in one turn",
  isShort: true,
  ask: async (engine) => {
    const heard = await calling(engine);
    const calls = callsOf(heard);
    return calls.length > 1
      ? yes(calls.join(", "))
      : (unanswered(heard) ?? unknown(`the model called ${calls.length}`));
  },
};

const streamedCall: CheckQuestion = {
  name: "call_streamed",
  does: "calls a tool in a stream",
  ask: async (engine) => {
    const heard = await engine.put({ ...asked, stream: true });
    const [whole, calls] = [callsOf(await calling(engine)), callsOf(heard)];
    if (calls.length > 0) return yes(calls.join(", "));
    return (
      unanswered(heard) ??
      (whole.length > 0 ? no(`${whole.length} calls if it is not streamed`) : unknown("the model called none"))
    );
  },
};

/** The verdict on an answer without a call, where one was demanded. */
function uncalled(heard: Heard): Judged {
  if (!heard.result) return unanswered(heard)!;
  return heard.result.reason === "length" ? unknown("the answer was cut") : no("answers with a text");
}

const required: CheckQuestion = {
  name: "forced_call",
  does: "calls a tool when one must be called",
  ask: async (engine) => {
    const heard = await engine.put({ tools, turns: [says("Say hello.")], toolChoice: { kind: "required" } });
    const calls = callsOf(heard);
    return calls.length > 0 ? yes(calls.join(", ")) : uncalled(heard);
  },
};

const named: CheckQuestion = {
  name: "named_call",
  does: "calls the tool that is named",
  expects: ({ namedTool }) => (namedTool === "name" ? "yes" : "no"),
  ask: async (engine) => {
    const dialect: Dialect = { ...engine.dialect, namedTool: "name" };
    const heard = await engine.put({ ...asked, toolChoice: { kind: "tool", name: "time" } }, { dialect });
    const calls = callsOf(heard);
    if (calls.length > 0) return calls.every((name) => name === "time") ? yes("time") : no(`calls ${calls.join(", ")}`);
    return uncalled(heard);
  },
};

const noCall: CheckQuestion = {
  name: "no_call",
  does: "calls no tool when none may be called",
  ask: async (engine) => {
    const heard = await engine.put({ ...asked, toolChoice: { kind: "none" } });
    const calls = callsOf(heard);
    if (calls.length > 0) return no(`calls ${calls.join(", ")}`);
    const wouldCall = callsOf(await calling(engine)).length > 0;
    return unanswered(heard) ?? (wouldCall ? yes("answers with a text") : unknown("the model calls none anyway"));
  },
};

const oneCall: CheckQuestion = {
  name: "one_call",
  does: "calls one tool when only one may be called",
  ask: async (engine) => {
    const heard = await engine.put({ ...asked, parallelToolCalls: false });
    const [whole, calls] = [callsOf(await calling(engine)), callsOf(heard)];
    if (calls.length > 1) return no(`calls ${calls.join(", ")}`);
    if (!heard.result) return unanswered(heard)!;
    return whole.length > 1 && calls.length === 1 ? yes("one") : unknown("the model does not call two");
  },
};

/** A turn of tool calls without its final answer: templates leave out the reasoning of turns that are complete. */
function openTurn(thought: string | null): Turn[] {
  const calls: AssistantPart[] = tools.map(({ name }, index) => ({
    kind: "tool-call",
    callId: `call_${index + 1}`,
    toolName: name,
    arguments: '{"city": "Oslo"}',
  }));
  const thoughts: AssistantPart[] = thought === null ? [] : [{ kind: "reasoning", text: thought }];
  const results = ["rain", "noon"].map(
    (text, index): Turn => ({ role: "tool", callId: `call_${index + 1}`, parts: [{ kind: "text", text }] }),
  );
  return [question, { role: "assistant", parts: [...thoughts, ...calls] }, ...results];
}

const thought = "I need two tools, one for the weather and one for the time of day, and I will ask both at once.";
const withoutThought = (engine: Asking) => engine.once("results", () => engine.put({ tools, turns: openTurn(null) }));

const results: CheckQuestion = {
  name: "tool_results",
  does: "takes the results of calls",
  ask: async (engine) => taken(await withoutThought(engine)),
};

/** Reasoning was read if the prompt has at least this many more tokens with it than without it. */
const thought_tokens_min = 8;

async function comesBack(engine: Asking, rows: Partial<Dialect>): Promise<Judged> {
  const without = await withoutThought(engine);
  if (!without.result) return unknown("takes no results of calls");
  const heard = await engine.put({ tools, turns: openTurn(thought) }, { dialect: { ...engine.dialect, ...rows } });
  const refusal = unanswered(heard);
  if (refusal) return refusal;
  if (heard.promptTokens === null || without.promptTokens === null)
    return unknown("no usage tells whether it was read");
  const grown = heard.promptTokens - without.promptTokens;
  return grown >= thought_tokens_min
    ? yes(`the prompt grows by ${grown} tokens`)
    : no(`the prompt grows by ${grown} tokens`);
}

const thoughtAs = (field: ReasoningField): CheckQuestion => ({
  name: `thought_${field}`,
  does: `reads a thought that comes back as ${field}`,
  protocols: ["openai-chat"],
  isShort: true,
  expects: ({ reasoning }) => (reasoning.out.includes(field) ? "yes" : "unknown"),
  ask: (engine) => comesBack(engine, { reasoning: { ...engine.dialect.reasoning, out: [field] } }),
});

const unsignedThought: CheckQuestion = {
  name: "thought_unsigned",
  does: "reads a thought that comes back without a signature",
  protocols: ["anthropic-messages"],
  isShort: true,
  expects: ({ unsignedThoughts }) => (unsignedThoughts ? "yes" : "unknown"),
  ask: (engine) => comesBack(engine, { unsignedThoughts: true }),
};

const thinks: CheckQuestion = {
  name: "thought",
  does: "says its thoughts apart from its text",
  isShort: true,
  ask: async (engine) => {
    const heard = await hello(engine);
    const thoughts = heard.result?.parts.filter(({ head }) => head.kind === "reasoning") ?? [];
    if (thoughts.length > 0) return yes(`${thoughts.reduce((sum, { text }) => sum + text.length, 0)} characters`);
    if (answerText(heard).includes("<think>")) return no("in its text, as <think>; give it a reasoning parser");
    return unanswered(heard) ?? unknown("the model had none");
  },
};

export const toolQuestions: readonly CheckQuestion[] = [
  call,
  twoCalls,
  streamedCall,
  required,
  named,
  noCall,
  oneCall,
  results,
  thinks,
  thoughtAs("reasoning"),
  thoughtAs("reasoning_content"),
  unsignedThought,
];
