/**
 * Every pair: each kind of client in front of each kind of engine. A client's request reaches the engine in the
 * engine's own protocol, and the engine's answer reaches the client in the client's, as a stream and whole. The table
 * below states the guarantees. The requests that a pair refuses, and its treatment of history, images and files, are in
 * losses.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { coreOperations } from "../../../src/core/operations/list.ts";
import { grammarProblem } from "./grammar.ts";
import {
  type Answer,
  type Ask,
  type Caller,
  type ClientName,
  callers,
  clientNames,
  type Engine,
  type EngineName,
  engineNames,
  engines,
  wires,
} from "./pairs/wires.ts";
import { bytes, decodedBy, folded } from "./reading.ts";

const plain: Answer = { reasoning: "", text: "Hello wörld 🌍", calls: [], end: "stop" };
const twoCalls = [
  { id: "call_a", name: "f", input: { x: 1 } },
  { id: "call_b", name: "g", input: { y: [2] } },
];

const patched = (id: string, input: string) => ({ id, name: "patch", input: { input }, custom: true as const });

interface Row {
  /** The client's request; null if the client's protocol cannot express it. */
  ask(caller: ClientName): Ask | null;
  /** The texts that must be found in the engine's request, in any protocol. */
  heard: (string | RegExp)[];
  answers: Answer[];
}

const question: Ask = { instructions: "INSTRUCTION", question: "QUESTION" };
const always = (ask: Ask) => () => ask;
const except =
  (ask: Ask, ...without: ClientName[]) =>
  (name: ClientName) =>
    without.includes(name) ? null : ask;

const rows: Record<string, Row> = {
  text: { ask: always(question), heard: [/INSTRUCTION.*QUESTION|QUESTION.*INSTRUCTION/], answers: [plain] },
  "parallel tools": {
    ask: always({ ...question, tools: ["f", "g"] }),
    heard: ['"f"', '"g"', "PROPERTY"],
    answers: [
      { ...plain, text: "", calls: twoCalls, end: "tool_calls" },
      { ...plain, calls: twoCalls, end: "tool_calls" },
    ],
  },
  "custom tools": {
    ask: except({ ...question, custom: ["patch"] }, "messages"),
    heard: ['"patch"', "GRAMMAR"],
    answers: [
      { ...plain, calls: [patched("call_a", '*** "Begin"\n\\ 🌍\u2028}'), patched("call_b", "")], end: "tool_calls" },
    ],
  },
  "no parallel tools": {
    ask: always({ ...question, tools: ["f"], parallel: false }),
    heard: [/"parallel_tool_calls":false|"disable_parallel_tool_use":true/],
    answers: [{ ...plain, calls: twoCalls.slice(0, 1), end: "tool_calls" }],
  },
  "the tool that must be called": {
    ask: always({ ...question, tools: ["f", "g"], must: "g" }),
    heard: [/"tool_choice":("required"|\{"type":"tool","name":"g"\})/],
    answers: [{ ...plain, text: "", calls: twoCalls.slice(1), end: "tool_calls" }],
  },
  reasoning: {
    ask: always({ ...question, effort: "high" }),
    heard: ['"high"'],
    answers: [
      { ...plain, reasoning: "Let me think." },
      { ...plain, reasoning: "A call.", text: "", calls: twoCalls, end: "tool_calls" },
    ],
  },
  "reasoning as a summary": {
    ask: except({ ...question, effort: "high", summary: true }, "chat", "messages"),
    heard: ['"high"'],
    answers: [
      { ...plain, reasoning: "Let me think." },
      { ...plain, reasoning: "A call.", text: "", calls: twoCalls, end: "tool_calls" },
    ],
  },
  "stop reasons": {
    ask: always({ ...question, tools: ["f", "g"], outputTokens_max: 77 }),
    heard: [/"max_(output_|completion_)?tokens":77/],
    answers: [
      plain,
      { ...plain, end: "length" },
      { ...plain, end: "content_filter" },
      { ...plain, calls: twoCalls, end: "tool_calls" },
    ],
  },
  "structured output": {
    ask: always({ ...question, schema: { type: "object", properties: { SCHEMA: { type: "string" } } } }),
    heard: ["SCHEMA"],
    answers: [{ ...plain, text: '{"SCHEMA":"x"}' }],
  },
};

const pairs = clientNames.flatMap((caller) =>
  engineNames.map((engine) => [caller, engine] as [ClientName, EngineName]),
);
const upstreamAsk = { model: "engine", outputTokens_max: 1000 };

function answered(caller: Caller, engine: Engine, ask: Ask, answer: Answer): void {
  const events = decodedBy(engine.codec, caller.identity, [bytes(engine.stream(answer))]);
  expect(grammarProblem(events)).toBeNull();
  expect(caller.readStream(ask, events)).toEqual(answer);
  const whole = engine.codec.response.decode(engine.whole(answer), caller.identity);
  expect(grammarProblem(whole)).toBeNull();
  expect(caller.readWhole(ask, folded(whole))).toEqual(answer);
}

test("every operation that creates an answer has its client here", () => {
  const creating = coreOperations.filter(
    ({ method, success }) => method === "post" && "text/event-stream" in success.content,
  );
  expect(Object.values(wires).map(({ path }) => path)).toEqual(creating.map(({ path }) => path));
});

describe.each(pairs)("a client of %s in front of an engine of %s", (callerName, engineName) => {
  const caller = callers[callerName];
  const engine = engines[engineName];

  test.each(Object.entries(rows))("%s", (_, { ask: askOf, heard, answers }) => {
    const ask = askOf(callerName);
    if (!ask) return;
    for (const stream of [true, false]) {
      const told = JSON.stringify(engine.codec.request.encode(caller.decode(ask, stream), { ...upstreamAsk, stream }));
      for (const mark of heard) expect(told).toMatch(mark);
    }
    for (const answer of answers) answered(caller, engine, ask, answer);
  });

  test("errors: an engine's refusal is the client's own error, in our words", () => {
    const said: [number, string][] = [
      [400, "invalid_value"],
      ...[401, 402, 403, 404, 500].map((status): [number, string] => [status, "upstream_unavailable"]),
      [413, "invalid_value"],
      [429, "capacity_exceeded"],
      [503, "overloaded"],
      [504, "upstream_timeout"],
      [529, "overloaded"],
    ];
    for (const [status, code] of said) {
      const fault = engine.codec.fault.decode(status, { error: { message: "SECRET", type: "x", code: "SECRET" } });
      const rendered = JSON.stringify(caller.codec.fault.encode(fault, "req_1"));
      expect(rendered).toContain(`"${code}"`);
      expect(rendered).not.toContain("SECRET");
    }
    const long = engine.codec.fault.decode(400, {
      error: { message: "prompt is too long", type: "invalid_request_error" },
    });
    expect(JSON.stringify(caller.codec.fault.encode(long, "req_1"))).toContain("context_length_exceeded");
  });

  test("errors inside a stream: the client sees its own, and no end", () => {
    const events = decodedBy(engine.codec, caller.identity, [bytes(engine.broken(plain))]);
    expect(grammarProblem(events)).toBeNull();
    expect(caller.readStream(question, events).end).toBe("failed");
  });

  test("truncation: wherever the engine is cut, the client sees a failure, and what came before", () => {
    const frames = engine.stream({ ...plain, reasoning: "Hm.", calls: twoCalls, end: "tool_calls" }).split(/(?<=\n\n)/);
    const last = frames.findIndex((frame) => engine.ends(frame));
    expect(last).toBeGreaterThan(3);
    for (let kept = 0; kept <= last; kept++) {
      const events = decodedBy(engine.codec, caller.identity, [bytes(frames.slice(0, kept).join(""))]);
      expect(events.at(-1)?.type).toBe("response-failed");
      const read = caller.readStream(question, events);
      expect(read.end).toBe("failed");
      expect("Hm.".startsWith(read.reasoning) && plain.text.startsWith(read.text)).toBe(true);
      if (kept === last) expect([read.reasoning, read.text]).toEqual(["Hm.", plain.text]);
    }
  });
});
