// For every random deviation of engines: the client's stream follows its grammar, no character is lost or duplicated,
// and an incomplete response is never a success.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encodeSse } from "../../src/core/sse/decode.ts";
import { grammarProblem } from "../core/protocol/grammar.ts";
import { callers, clientNames, engineNames, engines, wires } from "../core/protocol/pairs/wires.ts";
import { readBy } from "../core/protocol/reading.ts";
import { contractProblems } from "../harness/contract.ts";
import { oddStream } from "./odd-engine.ts";

const runs = 300;
const requestId = `req_${"0".repeat(32)}`;
const ids = { "x-service-request-id": requestId, "x-request-id": requestId, "request-id": requestId };
const headers = new Headers({ "content-type": "text/event-stream", ...ids });

const text = fc.array(
  fc.constantFrom("a", " ", "\n", "é", "語", "😀", "𠮷", "🀄", "👩‍🚀", '"', "\\", "<b>", "data: "),
  {
    maxLength: 12,
  },
);
const answers = fc.record({
  reasoning: text.map((pieces) => pieces.join("")),
  text: text.map((pieces) => pieces.join("")),
  calls: fc.array(fc.record({ city: text.map((pieces) => pieces.join("")) }), { maxLength: 3 }),
});

describe.each(clientNames)("a client of %s", (client) => {
  test.each(engineNames)("in front of an odd engine of %s", async (engine) => {
    const caller = callers[client];
    const ask = { instructions: "", question: "q", tools: ["f0", "f1", "f2"] };
    await fc.assert(
      fc.asyncProperty(answers, fc.infiniteStream(fc.nat(1_000_000)), async (meant, numbers) => {
        const draw = (below: number) => numbers.next().value! % below;
        const calls = meant.calls.map((input, at) => ({ id: `id${at}`, name: `f${at}`, input }));
        const { bytes, end } = oddStream(engine, { ...meant, calls }, draw);
        const events = await readBy(engines[engine].codec.stream.decoder(caller.identity), bytes);
        expect(grammarProblem(events)).toBeNull();
        const frames = caller.written(ask, events);
        const body = frames.map(encodeSse).join("").replaceAll('"req_1"', `"${requestId}"`);
        const isBegun = events.some(({ type }) => type === "part-start");
        if (isBegun) expect(contractProblems("POST", wires[client].path, { status: 200, headers }, body)).toEqual([]);
        const seen = caller.readStream(ask, events);
        // JSON writes half a character as an escape, and a whole character as it is.
        expect(body).not.toMatch(/\\ud[89a-f][0-9a-f]{2}/i);
        if (end === "failed") {
          expect(["failed", "none"]).toContain(seen.end);
          expect(meant.text.startsWith(seen.text.replace(/\uFFFD$/, ""))).toBe(true);
          return;
        }
        expect(seen).toMatchObject({ reasoning: meant.reasoning, text: meant.text });
        expect(seen.calls.map(({ name, input }) => [name, input])).toEqual(
          calls.map(({ name, input }) => [name, input]),
        );
        expect(new Set(seen.calls.map(({ id }) => id)).size).toBe(calls.length);
        expect(seen.end).toBe(end === "stop" && calls.length > 0 ? "tool_calls" : end);
      }),
      { numRuns: runs },
    );
  });
});
