/**
 * The tokens as which an answer is counted before its engine reports: its deltas if each is a token, otherwise an
 * estimate from its text that the route's reports have taught. No answer moves a ratio (tokens per code unit) by more
 * than a tenth, and no report moves it beyond the ratios that a vocabulary can have.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { type Amount, addUnits, scriptOf } from "../../../src/core/usage/forwarded.ts";
import { type Observed, outputCalibration, type RouteCalibration } from "../../../src/core/usage/output-calibration.ts";
import { Tally } from "../../../src/core/usage/tally.ts";
import { times } from "../../harness/depth.ts";

const none: Amount = { deltas: 0, cjkDeltas: 0, otherDeltas: 0, latin: 0, cjk: 0, other: 0 };
const latin = (deltas: number, units: number): Amount => ({ ...none, deltas, latin: units });
const streamed = (amount: Amount) => ({ streamed: amount, whole: none });
const whole = (amount: Amount) => ({ streamed: none, whole: amount });

/** A route's calibration after more answers than any ratio needs, each of which moves the ratio by a tenth at most. */
function taught(observed: Observed, route: RouteCalibration = outputCalibration().of("main/m")): RouteCalibration {
  for (let time = 0; time < 40; time++) route.observe(observed);
  return route;
}

const answerOf = (tokens: number, deltas: number, units: number) => ({ tokens, ...streamed(latin(deltas, units)) });

describe("deltas", () => {
  test("a route that was taught by code charges prose by its deltas, each of which is a token", () => {
    const route = taught(answerOf(180, 180, 590));
    for (const [deltas, units] of [
      [7, 34],
      [18, 82],
      [53, 254],
      [1_000, 4_750],
    ] as const)
      expect(route.tokens(streamed(latin(deltas, units)))).toBe(deltas);
  });

  test("an engine that sends a token a delta is counted by deltas alone, and by its text once it sends them together", () => {
    const route = taught(answerOf(100, 100, 300));
    for (const units of [0, 7, 21, 26]) expect(route.tokens(streamed(latin(7, units)))).toBe(7);
    expect(route.tokens(streamed(latin(50, 300)))).toBe(100);
  });

  test("an engine that sends a delta for each character is counted by tokens once it has reported", () => {
    expect(taught(answerOf(100, 400, 400)).tokens(streamed(latin(200, 200)))).toBe(50);
  });

  test("an answer of which a part came whole teaches nothing of deltas", () => {
    const route = taught({ tokens: 130, streamed: latin(100, 400), whole: latin(1, 120) });
    expect(route.tokens(streamed(latin(7, 40)))).toBe(7);
  });

  test("before the first report four code units of Latin are a token, unless each delta may be one", () => {
    const route = outputCalibration().of("main/m");
    expect(route.tokens(streamed(latin(100, 600)))).toBe(100);
    expect(route.tokens(streamed(latin(25, 400)))).toBe(100);
    expect(route.tokens(whole(latin(1, 400)))).toBe(100);
    // A token of Chinese is one or two characters.
    const chinese = route.tokens(whole({ ...none, deltas: 1, cjk: 400 }));
    expect(chinese).toBeGreaterThan(200);
    expect(chinese).toBeLessThan(400);
  });
});

test("a route that reports is known to, however many did before", () => {
  const learned = outputCalibration();
  for (let at = 0; at < 3_000; at++) learned.of(`main/${at}`).reported();
  expect(learned.of("main/2999").isReporting).toBe(true);
});

test("a calibration in use stays that of its route, however many others are asked for after it", () => {
  const learned = outputCalibration();
  const sent = streamed(latin(30, 180));
  const first = learned.of("main/m");
  taught(answerOf(100, 10, 200), first);
  for (let at = 0; at < 3_000; at++) learned.of(`main/${at}`).tokens(sent);
  for (const route of [first, learned.of("main/m")]) expect(route.tokens(sent)).toBe(90);
  learned.of("main/m").missed();
  expect(first.isReporting).toBe(false);
});

describe("text", () => {
  test("two engines of one model are known apart", () => {
    const learned = outputCalibration();
    const first = taught(answerOf(100, 10, 200), learned.of("main/m"));
    const second = taught(answerOf(100, 100, 600), learned.of("spare/m"));
    const sent = streamed(latin(30, 180));
    expect([first.tokens(sent), second.tokens(sent)]).toEqual([90, 30]);
  });

  test("what a tokenizer counted stands for reports until there is one", () => {
    const learned = outputCalibration();
    const route = learned.of("main/m");
    const sent = streamed(latin(10, 400));
    for (let time = 0; time < 40; time++) route.observeCount({ tokens: 200, ...sent });
    expect([route.tokens(sent), route.isReporting]).toEqual([200, false]);
    expect([...learned.sums.changes()]).toEqual([]);
    route.reported();
    taught({ tokens: 80, ...sent }, route);
    expect(route.tokens(sent)).toBeCloseTo(80, -1);
    expect(route.isReporting).toBe(true);
    route.missed();
    expect(route.isReporting).toBe(false);
    route.reported();
    expect(route.isReporting).toBe(true);
  });

  test("each answer moves a ratio by a tenth at most, and each script has its own", () => {
    const route = outputCalibration().of("main/m");
    const latinOf = () => route.tokens(whole(latin(1, 100_000)));
    const chineseOf = () => route.tokens(whole({ ...none, deltas: 1, cjk: 100_000 }));
    const [prose, chinese] = [latinOf(), chineseOf()];
    route.observe({ tokens: 90_000, ...whole(latin(1, 100_000)) });
    expect(latinOf() / prose).toBeCloseTo(1.1, 3);
    route.observe({ tokens: 90_000, ...whole(latin(1, 100_000)) });
    expect(latinOf() / prose).toBeCloseTo(1.21, 3);
    expect(chineseOf()).toBe(chinese);
  });

  test("whatever is reported, a ratio stays between the bounds of its script", () => {
    const bounds = { latin: [1, 8], cjk: [0.4, 3], other: [0.3, 8] } as const;
    const report = fc.record({
      tokens: fc.integer({ min: 1, max: 1_000_000 }),
      latin: fc.nat(10_000),
      cjk: fc.nat(10_000),
      other: fc.nat(10_000),
    });
    const property = fc.property(fc.array(report, { minLength: 1, maxLength: 60 }), (reports) => {
      const route = outputCalibration().of("main/m");
      for (const { tokens, ...units } of reports) route.observe({ tokens, ...whole({ ...none, deltas: 1, ...units }) });
      for (const [script, [least, most]] of Object.entries(bounds)) {
        const unitsOfToken = 100_000 / route.tokens(whole({ ...none, deltas: 1, [script]: 100_000 }));
        expect(unitsOfToken).toBeGreaterThanOrEqual(least * 0.999);
        expect(unitsOfToken).toBeLessThanOrEqual(most * 1.001);
      }
    });
    fc.assert(property, { numRuns: times(50, 500) });
  });
});

test("scripts are told apart by their code units", () => {
  const of = (text: string) => {
    const units = { latin: 0, cjk: 0, other: 0 };
    addUnits(units, text);
    return units;
  };
  expect(of("Grüße, мир, κόσμε: 12 “x”")).toEqual({ latin: 25, cjk: 0, other: 0 });
  expect(of("水門です。한국어")).toEqual({ latin: 0, cjk: 8, other: 0 });
  expect(of("سد 🚤")).toEqual({ latin: 1, cjk: 0, other: 4 });
  expect(scriptOf(0x0e01)).toBe("other");
});

describe("what an answer teaches", () => {
  const start: InferenceEvent = { type: "response-start", responseId: "r", createdAtSeconds: 0, model: "m" };
  const text: InferenceEvent = { type: "part-start", index: 0, part: { kind: "text" } };
  const end: InferenceEvent = { type: "response-end", reason: "stop" };

  /**
   * The tokens as which 10,000 code units are counted, after answers whose reports say about one token per code unit.
   */
  function after(change: {
    events?: InferenceEvent[];
    tokens?: number;
    reasoningTokens?: number;
    end?: InferenceEvent;
  }) {
    const route = outputCalibration().of("main/m");
    const { tokens = 80, reasoningTokens = 0 } = change;
    const usage = { ...noUsage, inputTokens: 5, outputTokens: tokens, reasoningTokens, source: "reported" as const };
    const said: InferenceEvent[] = [{ type: "part-delta", index: 0, delta: "x".repeat(100) }];
    const parts = change.events ?? [text, ...said, { type: "part-end", index: 0 }];
    for (let time = 0; time < 40; time++) {
      const tally = new Tally({
        contextTokens: 10_000,
        outputTokensCap: 10_000,
        inputTokensExpected: 5,
        calibration: () => route,
        tokenizing: null,
        keepsText: () => true,
      });
      tally.add([start, ...parts, { type: "usage", usage }, change.end ?? end]);
      tally.calibrate();
    }
    return route.tokens(whole(latin(1, 10_000)));
  }

  test("a plain one that came to its end teaches", () => expect(after({})).toBeCloseTo(8_000, -2));

  const call: InferenceEvent = {
    type: "part-start",
    index: 1,
    part: { kind: "tool-call", callId: "c", toolName: "t" },
  };
  const thought: InferenceEvent = { type: "part-start", index: 1, part: { kind: "reasoning" } };
  const beside = (part: InferenceEvent): InferenceEvent[] => [
    text,
    { type: "part-delta", index: 0, delta: "x".repeat(50) },
    { type: "part-end", index: 0 },
    part,
    { type: "part-delta", index: 1, delta: "x".repeat(50) },
    { type: "part-end", index: 1 },
  ];
  test.each([
    ["a short one", { tokens: 63 }],
    ["one that thought, though it was not shown", { reasoningTokens: 40 }],
    ["one with thinking", { events: beside(thought) }],
    ["one with a call", { events: beside(call) }],
    ["one that its cap ended", { end: { type: "response-end", reason: "length" } as const }],
    ["one with calls as its reason", { end: { type: "response-end", reason: "tool_calls" } as const }],
    ["one with more tokens than its text can have", { tokens: 300 }],
  ])("%s teaches nothing", (_, change) => expect(after(change)).toBe(2_500));
});
