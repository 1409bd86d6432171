/**
 * The order of parts in a stream, for every pair: however an engine interleaves its parts, a client gets one part at a
 * time, each whole before the next begins. Clients that follow the open part would otherwise run the wrong command.
 */
import { describe, expect, test } from "bun:test";
import { grammarProblem } from "./grammar.ts";
import { answerOf, answers, framesOf, kindsTold, orderProblem, orders, runnable } from "./pairs/parts.ts";
import {
  type Ask,
  type ClientName,
  callers,
  clientNames,
  type EngineName,
  engineNames,
  engines,
  wires,
} from "./pairs/wires.ts";
import { bytes, decodedBy } from "./reading.ts";

const pairs = clientNames.flatMap((client) =>
  engineNames.map((engine) => [client, engine] as [ClientName, EngineName]),
);
const ask: Ask = { instructions: "Be brief.", question: "Go on.", tools: ["f0", "f1", "f2", "f3", "f4"] };
const kinds = Object.keys(answers).flatMap((what) => Object.keys(orders).map((order) => [what, order] as const));

describe.each(pairs)("a client of %s in front of an engine of %s", (client, engine) => {
  const caller = callers[client];
  const written = (frames: string[]) => {
    const events = decodedBy(engines[engine].codec, caller.identity, [bytes(frames.join(""))]);
    expect(grammarProblem(events)).toBeNull();
    return caller.written(ask, events);
  };

  test.each(kinds)("is told of %s, %s, one at a time", (what, order) => {
    const parts = answers[what]!;
    for (const end of ["tool_calls", "length"] as const) {
      const told = written(framesOf(engine, parts, order, end));
      expect(orderProblem[client](told)).toBeNull();
      expect(wires[client].readFrames(told)).toEqual(answerOf(parts, end));
      expect(kindsTold[client](told) ?? parts.map(({ kind }) => kind)).toEqual(parts.map(({ kind }) => kind));
    }
  });

  test.each(kinds)(
    "is told of %s, %s, a failure wherever the engine breaks off: what came before it, and no half a call",
    (what, order) => {
      const frames = framesOf(engine, answers[what]!, order);
      // Of a text that comes last, a Responses client, which reads whole items, has nothing before the answer's end.
      const isCallLast = answers[what]!.at(-1)!.kind === "call";
      const { reasoning, text } = answerOf(answers[what]!, "tool_calls");
      for (const kept of frames.keys()) {
        const told = written(frames.slice(0, kept));
        expect(orderProblem[client](told)).toBeNull();
        const read = wires[client].readFrames(told);
        expect(read.end).toBe("failed");
        expect(reasoning.startsWith(read.reasoning) && text.startsWith(read.text)).toBe(true);
        if (kept === frames.length - 1 && (isCallLast || client !== "responses"))
          expect(read).toMatchObject({ reasoning, text });
        if (client === "responses") for (const call of runnable(told)) expect(() => JSON.parse(call)).not.toThrow();
      }
    },
  );
});
