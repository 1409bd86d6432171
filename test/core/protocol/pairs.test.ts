/**
 * Every pair: each kind of client in front of each kind of engine. A client's request reaches the engine in the
 * engine's own protocol, and the engine's answer reaches the client in the client's, as a stream and whole. What becomes
 * of each field of a request is in losses.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { coreOperations } from "../../../src/core/operations/list.ts";
import { grammarProblem } from "./grammar.ts";
import {
  type Answer,
  type Ask,
  type ClientName,
  callers,
  clientNames,
  type EngineName,
  engineNames,
  engines,
  wires,
} from "./pairs/wires.ts";
import { bytes, decodedBy, folded } from "./reading.ts";

const ask: Ask = { instructions: "INSTRUCTION", question: "QUESTION", tools: ["f", "g"] };
const plain: Answer = { reasoning: "", text: "Hello wörld 🌍", calls: [], end: "stop" };
const calls = [
  { id: "call_a", name: "f", input: { x: 1 } },
  { id: "call_b", name: "g", input: { y: [2] } },
];

const answers: Record<string, Answer> = {
  text: plain,
  "structured output": { ...plain, text: '{"SCHEMA":"x"}' },
  reasoning: { ...plain, reasoning: "Let me think." },
  "one call": { ...plain, text: "", calls: calls.slice(1), end: "tool_calls" },
  "text and parallel calls": { ...plain, calls, end: "tool_calls" },
  "reasoning and parallel calls": { ...plain, reasoning: "Let me think.", text: "", calls, end: "tool_calls" },
  "an answer that reached its limit": { ...plain, end: "length" },
  "an answer that a filter stopped": { ...plain, end: "content_filter" },
};

const pairs = clientNames.flatMap((caller) =>
  engineNames.map((engine) => [caller, engine] as [ClientName, EngineName]),
);
const upstreamAsk = { model: "engine", outputTokens_max: 1000 };

test("every operation that creates an answer has its client here", () => {
  const creating = coreOperations.filter(
    ({ method, success }) => method === "post" && "text/event-stream" in success.content,
  );
  expect(Object.values(wires).map(({ path }) => path)).toEqual(creating.map(({ path }) => path));
});

describe.each(pairs)("a client of %s in front of an engine of %s", (callerName, engineName) => {
  const caller = callers[callerName];
  const engine = engines[engineName];

  test("the instructions, the question and the tools reach the engine", () => {
    for (const stream of [true, false]) {
      const told = JSON.stringify(engine.codec.request.encode(caller.decode(ask, stream), { ...upstreamAsk, stream }));
      for (const mark of ["INSTRUCTION", "QUESTION", '"f"', '"g"', "PROPERTY"]) expect(told).toContain(mark);
    }
  });

  test.each(Object.entries(answers))(
    "%s: the client reads what the engine said, as a stream and whole",
    (_, answer) => {
      const events = decodedBy(engine.codec, caller.identity, [bytes(engine.stream(answer))]);
      expect(grammarProblem(events)).toBeNull();
      expect(caller.readStream(ask, events)).toEqual(answer);
      const whole = engine.codec.response.decode(engine.whole(answer), caller.identity);
      expect(grammarProblem(whole)).toBeNull();
      expect(caller.readWhole(ask, folded(whole))).toEqual(answer);
    },
  );

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
    expect(caller.readStream(ask, events).end).toBe("failed");
  });
});
