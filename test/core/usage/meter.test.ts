/** However a stream ends, it is settled once, with the usage that was produced and forwarded. */

import { describe, expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage, type Usage } from "../../../src/core/inference/usage.ts";
import { compact } from "../../../src/core/protocol/json.ts";
import type { StoppingLimit } from "../../../src/core/store/ledger.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { Meter, type MeteredHold } from "../../../src/core/usage/meter.ts";
import { outputCalibration, type RouteCalibration } from "../../../src/core/usage/output-calibration.ts";
import type { Ending } from "../../../src/core/usage/record.ts";
import type { Tokenizing } from "../../../src/core/usage/tally.ts";
import { grammarProblem } from "../protocol/grammar.ts";

const start: InferenceEvent = { type: "response-start", responseId: "r", model: "acme/m", createdAtSeconds: 1 };
const text: InferenceEvent = { type: "part-start", index: 0, part: { kind: "text" } };
const token: InferenceEvent = { type: "part-delta", index: 0, delta: "word " };
const close: InferenceEvent = { type: "part-end", index: 0 };
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const failed: InferenceEvent = { type: "response-failed", fault: new Fault("upstream_unavailable", "gone") };
const reported = (inputTokens: number, outputTokens: number, reasoningTokens = 0): InferenceEvent => ({
  type: "usage",
  usage: {
    ...noUsage,
    inputTokens,
    outputTokens,
    reasoningTokens,
    source: "reported",
  },
});

const weekly: StoppingLimit = { limitedBy: "team", models: "acme/*", window: "week" };

async function run(
  batches: InferenceEvent[][],
  options: {
    hold?: Partial<MeteredHold>;
    leaveAfter?: number;
    callerLeft?: boolean;
    windowTokens?: number;
    tokenizing?: Tokenizing;
    keepsText?: () => boolean;
    calibration?: RouteCalibration;
    stream?: boolean;
  } = {},
) {
  const settled: Ending[] = [];
  const progress: Usage[] = [];
  let restarts = 0;
  let upstreamClosed = false;
  /** The number of batches that had been forwarded when the first part of an answer came. */
  const firstParts: number[] = [];
  async function* upstream() {
    try {
      yield* batches;
    } finally {
      upstreamClosed = true;
    }
  }
  const out: InferenceEvent[] = [];
  let count = 0;
  const metered = new Meter({
    events: upstream(),
    hold: {
      permits: () => true,
      stoppingLimit: () => weekly,
      progress: (usage) => void progress.push(usage),
      restart() {
        restarts += 1;
      },
      assertHeld() {},
      signal: new Cancellation(),
      ...options.hold,
    },
    stream: options.stream ?? true,
    fetched: null,
    contextTokens: 4096,
    inputTokensExpected: 40,
    outputTokensCap: 2000,
    calibration: () => options.calibration ?? outputCalibration().of("main/m"),
    windowTokens: options.windowTokens ?? null,
    tokenizing: options.tokenizing ?? null,
    keepsText: options.keepsText ?? (() => true),
    callerLeft: () => options.callerLeft ?? options.leaveAfter !== undefined,
    firstPart: () => void firstParts.push(count),
    over: () => void settled.push(metered.ending()),
  });
  for await (const batch of metered.events) {
    out.push(...batch);
    count += 1;
    if (count === options.leaveAfter) break;
  }
  return { out, settled, progress, restarts, upstreamClosed, firstParts };
}

describe("the meter", () => {
  test("a complete answer is settled once, at the engine's report", async () => {
    const { settled, out } = await run([[start, text], [token], [token, close, reported(7, 2), end]]);
    expect(settled).toEqual([
      {
        usage: expect.objectContaining({ inputTokens: 7, outputTokens: 2, source: "reported" }),
        outcome: "completed",
        stoppedBy: null,
        errorCode: null,
        fault: null,
        reportRejected: null,
        divergence: 1,
      },
    ]);
    expect(grammarProblem(out)).toBeNull();
  });

  test("reasoning that the engine reports and does not send is left out of how far its report and our count differ", async () => {
    const { settled } = await run([[start, text], [token], [token, close, reported(7, 12, 10), end]]);
    expect(settled).toMatchObject([{ usage: { outputTokens: 12, reasoningTokens: 10 }, divergence: 1 }]);
  });

  test("the first part of an answer comes once, and once more where another engine begins it again", async () => {
    const answer = [[text, token], [token], [close, reported(7, 2), end]];
    expect((await run([[start], ...answer])).firstParts).toEqual([1]);
    expect((await run([[start], [text], [start], ...answer])).firstParts).toEqual([1, 3]);
    expect((await run([[start], [failed]])).firstParts).toEqual([]);
  });

  test("what comes after an early report is counted, and the report's input stands, until a report after all output", async () => {
    const early = [start, text, reported(25, 1), token, token, token];
    const counted = await run([[...early, close, end]]);
    expect(counted.settled[0]?.usage).toMatchObject({ inputTokens: 25, outputTokens: 3, source: "counted" });
    const { settled } = await run([[...early, reported(25, 2), close, end]]);
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 25, outputTokens: 2, source: "reported" });
  });

  test("an explicit report of 0 stays 0", async () => {
    const { settled } = await run([[start, text, close, reported(0, 0), end]]);
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, source: "reported" });
  });

  test("without a report, what the client reads is what the book says", async () => {
    const { settled, out } = await run([[start, text], [token], [token], [token, close, end]]);
    const shown = out.find((event) => event.type === "usage");
    expect(shown).toEqual({ type: "usage", usage: settled[0]!.usage });
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 40, outputTokens: 3, source: "estimated" });
    expect(grammarProblem(out)).toBeNull();
  });

  test("a client that leaves in the middle is charged what was produced until then, and the upstream is closed", async () => {
    const { settled, upstreamClosed } = await run([[start, text], [token], [token], [token], [close, end]], {
      leaveAfter: 3,
    });
    expect(settled).toHaveLength(1);
    expect(settled[0]).toMatchObject({ outcome: "cancelled", usage: { inputTokens: 40, outputTokens: 2 } });
    expect(upstreamClosed).toBe(true);
  });

  test("a client that leaves after the last event has had a complete answer", async () => {
    const { settled } = await run([[start, text, token, close, reported(7, 1), end]], { leaveAfter: 1 });
    expect(settled[0]).toMatchObject({ outcome: "completed", usage: { outputTokens: 1, source: "reported" } });
  });

  test("a failure before any output charges nothing", async () => {
    const { settled } = await run([[start], [failed]]);
    expect(settled[0]).toMatchObject({
      outcome: "failed",
      errorCode: "upstream_unavailable",
      usage: { inputTokens: 0, outputTokens: 0 },
    });
  });

  test("a failure before the first word charges nothing, though a part was opened for it", async () => {
    const { settled } = await run([[start, text], [failed]]);
    expect(settled[0]).toMatchObject({ outcome: "failed", usage: { inputTokens: 0, outputTokens: 0 } });
  });

  test("a failure after output charges what was produced", async () => {
    const { settled } = await run([[start, text, token], [token], [failed]]);
    expect(settled[0]).toMatchObject({ outcome: "failed", usage: { inputTokens: 40, outputTokens: 2 } });
  });

  describe("of an answer that nobody streams", () => {
    const produced = [[start, text], [token], [token]];
    const stream = false;
    const lostFault = new Fault("storage_unavailable", "lost");
    const lost = new Cancellation();
    lost.abort(lostFault);

    test("nothing is charged where its engine breaks after output: nothing was delivered", async () => {
      const { settled } = await run([...produced, [failed]], { stream });
      expect(settled[0]).toMatchObject({ outcome: "failed", usage: { inputTokens: 0, outputTokens: 0 } });
    });

    test("a window's end delivers the part, which is charged", async () => {
      const permits = (tokens: number) => (tokens <= 1 ? true : Promise.resolve(false));
      const { settled, out } = await run([...produced, [close, end]], { stream, hold: { permits } });
      expect(out.at(-1)).toEqual({ type: "response-end", reason: "length" });
      expect(settled[0]).toMatchObject({ outcome: "completed", stoppedBy: weekly, usage: { outputTokens: 1 } });
    });

    test("what an engine said that failed is not counted for the next, whose end is the answer's", async () => {
      const { settled, out, restarts } = await run(
        [...produced, [start], [start, text, token], [close, reported(9, 1), end]],
        { stream },
      );
      expect(restarts).toBe(1);
      expect(settled).toMatchObject([{ outcome: "completed", usage: { inputTokens: 9, outputTokens: 1 } }]);
      expect(grammarProblem(out.slice(out.lastIndexOf(start)))).toBeNull();
      const left = await run([...produced, [start], [start, text, token], [token]], { stream, leaveAfter: 5 });
      expect(left.settled).toMatchObject([{ outcome: "cancelled", usage: { outputTokens: 1 } }]);
    });

    test("whoever leaves is charged what was produced; what came whole for nobody costs what the engine reports", async () => {
      const left = await run(produced, { stream, leaveAfter: 3 });
      expect(left.settled[0]).toMatchObject({ outcome: "cancelled", usage: { inputTokens: 40, outputTokens: 2 } });
      const { settled } = await run([[start, text, token, close, reported(7, 1), end]], { stream, callerLeft: true });
      expect(settled[0]).toMatchObject({ outcome: "cancelled", usage: { outputTokens: 1, source: "reported" } });
    });

    test("its end is no delivery where the lease is lost, before any timer says so; and then nothing is charged", async () => {
      const assertHeld = () => lost.throwIfAborted();
      for (const callerLeft of [false, true]) {
        const { settled, out } = await run([...produced, [close, end]], {
          ...{ stream, callerLeft },
          hold: { assertHeld, signal: lost },
        });
        expect(out.at(-1)).toEqual({ type: "response-failed", fault: lostFault });
        expect(settled[0]).toMatchObject({ usage: { inputTokens: 0, outputTokens: 0 } });
      }
      // A streamed answer has already delivered its text when the lease is lost.
      const streamed = await run([...produced, [close, end]], { hold: { assertHeld, signal: lost } });
      expect(streamed.settled[0]).toMatchObject({ outcome: "completed", usage: { outputTokens: 2 } });
    });
  });

  test("a window's end cuts the answer with `length`, before what it does not cover is forwarded", async () => {
    const { settled, out, upstreamClosed } = await run([[start, text], [token], [token], [token], [close, end]], {
      hold: { permits: (tokens) => (tokens <= 2 ? true : Promise.resolve(false)) },
    });
    expect(out.filter((event) => event.type === "part-delta")).toHaveLength(2);
    expect(out.at(-1)).toEqual({ type: "response-end", reason: "length" });
    expect(grammarProblem(out)).toBeNull();
    expect(settled[0]).toMatchObject({ outcome: "completed", stoppedBy: weekly, usage: { outputTokens: 2 } });
    expect(upstreamClosed).toBe(true);
  });

  test("what one read brought is forwarded as far as the window reaches, whatever stands in it", async () => {
    const running = reported(7, 3);
    for (const batch of [
      [token, token, token, token, token, close, reported(7, 5), end],
      [token, token, token, running, token, token, close, end],
    ]) {
      const { settled, out } = await run([[start, text], batch], {
        hold: { permits: (tokens) => (tokens <= 3 ? true : Promise.resolve(false)) },
      });
      expect(out.filter((event) => event.type === "part-delta")).toHaveLength(3);
      expect(out.at(-1)).toEqual({ type: "response-end", reason: "length" });
      expect(grammarProblem(out)).toBeNull();
      expect(settled[0]).toMatchObject({ stoppedBy: weekly, usage: { outputTokens: 3 } });
    }
  });

  test("a lease that is lost at a window's end is a failure, not an end", async () => {
    const lost = new Fault("storage_unavailable", "lost");
    const permits = (tokens: number) => (tokens <= 1 ? Promise.reject(lost) : Promise.resolve(false));
    const { settled, out } = await run(
      [
        [start, text],
        [token, token, close, end],
      ],
      { hold: { permits } },
    );
    expect(out.at(-1)).toEqual({ type: "response-failed", fault: lost });
    expect(settled[0]).toMatchObject({ outcome: "failed", errorCode: "storage_unavailable", stoppedBy: null });
  });

  test("an answer that comes whole was stopped by the window where it is as long as that allowed", async () => {
    const whole = (tokens: number, reason: "length" | "stop"): InferenceEvent[][] => [
      [start, text, token, close, reported(7, tokens), { type: "response-end", reason }],
    ];
    const stopped = async (batches: InferenceEvent[][], windowTokens?: number) =>
      (await run(batches, compact({ windowTokens }))).settled[0]?.stoppedBy;
    expect(await stopped(whole(300, "length"), 300)).toBe(weekly);
    expect(await stopped(whole(300, "stop"), 300)).toBeNull();
    expect(await stopped(whole(200, "length"), 300)).toBeNull();
    expect(await stopped(whole(300, "length"))).toBeNull();
  });

  test("code units count where an engine sends many tokens a delta", async () => {
    const long: InferenceEvent = {
      type: "part-delta",
      index: 0,
      delta: "x".repeat(400),
    };
    const { settled } = await run([[start, text, long]], { leaveAfter: 1 });
    expect(settled[0]?.usage).toMatchObject({ outputTokens: 100, source: "estimated" });
  });
});

describe("an engine that lies", () => {
  const words = Array<InferenceEvent>(20).fill(token);
  const lie = (outputTokens: number, change: Partial<Usage> = {}): InferenceEvent => {
    const event = reported(12, outputTokens);
    return event.type === "usage" ? { ...event, usage: { ...event.usage, ...change } } : event;
  };

  test("is not believed: the count stands, in the book, for the client and for the hold", async () => {
    const asked: number[] = [];
    const hold = { permits: (tokens: number) => asked.push(tokens) > 0 };
    for (const batches of [
      [[start, text, ...words, close, lie(5_000_000), end]],
      [[start, text], words, [close, lie(5_000_000)], [end]],
    ]) {
      const { settled, out, progress } = await run(batches, { hold: hold as Partial<MeteredHold> });
      expect(settled[0]).toMatchObject({
        usage: { inputTokens: 12, outputTokens: 20, source: "counted" },
        outcome: "completed",
        reportRejected: { output: "above_cap", said: { prompt_tokens: 12, output_tokens: 5_000_000 } },
        divergence: 250_000,
      });
      expect(out.filter(({ type }) => type === "usage")).toEqual([{ type: "usage", usage: settled[0]!.usage }]);
      expect(grammarProblem(out)).toBeNull();
      expect(Math.max(...asked, ...progress.map(({ outputTokens }) => outputTokens))).toBe(20);
    }
  });

  test("teaches nothing, and one that thinks better of it is believed", async () => {
    const learned = outputCalibration();
    const calibration = learned.of("main/m");
    await run([[start, text, ...words, close, lie(3), end], []], { calibration });
    await run([[start, text, ...words, close, lie(2_001), end]], { calibration });
    expect([...learned.sums.changes()]).toEqual([]);
    const { settled } = await run(
      [
        [start, text, ...words, lie(9e9)],
        [close, lie(20), end],
      ],
      { calibration },
    );
    expect(settled[0]).toMatchObject({ usage: { outputTokens: 20, source: "reported" }, reportRejected: null });
  });
});

describe("what a tokenizer counts", () => {
  const words = Array<InferenceEvent>(20).fill(token);
  /** A tokenizer works on another thread, so its count comes in a later turn of the loop. */
  async function later(count: Promise<number>): Promise<number> {
    const [tokens] = await Promise.all([count, new Promise(setImmediate)]);
    return tokens;
  }
  /** A tokenizer that returns these counts, whatever the text is. */
  function tokenizer(prompt: Promise<number> | null, answer: Promise<number>) {
    const asked = { prompt: 0, answers: [] as string[] };
    const tokenizing: Tokenizing = {
      hasPrompt: prompt !== null,
      prompt() {
        asked.prompt += 1;
        return prompt && later(prompt);
      },
      answer(parts) {
        if (parts.length === 0) return Promise.resolve({ tokens: 0, reasoningTokens: 0 });
        asked.answers.push(parts.map((part) => part.text).join(""));
        return later(answer).then((tokens) => ({ tokens, reasoningTokens: 0 }));
      },
    };
    return { asked, tokenizing };
  }

  test("is what the caller reads and what the book says, of an answer that nobody reported", async () => {
    const { asked, tokenizing } = tokenizer(Promise.resolve(33), Promise.resolve(27));
    const { out, settled } = await run(
      [
        [start, text, ...words],
        [token, close, end],
      ],
      { tokenizing },
    );
    const usage = { inputTokens: 33, outputTokens: 27, source: "counted" };
    expect(settled[0]?.usage).toMatchObject(usage);
    expect(out.filter(({ type }) => type === "usage")).toMatchObject([{ usage }]);
    expect(grammarProblem(out)).toBeNull();
    expect(asked).toEqual({ prompt: 1, answers: ["word ".repeat(21)] });
  });

  test("is not asked for where the engine reported, and its text is not kept where engines do", async () => {
    const { asked, tokenizing } = tokenizer(Promise.resolve(33), Promise.resolve(27));
    const calibration = outputCalibration().of("main/m");
    const whole = [start, text, ...words, close, reported(7, 20), end];
    for (let answer = 0; answer < 2; answer++) await run([whole], { tokenizing, calibration });
    expect(asked).toEqual({ prompt: 0, answers: [] });
    const { settled } = await run(
      [
        [start, text, ...words],
        [close, end],
      ],
      { tokenizing, calibration },
    );
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 33, outputTokens: 20 });
    expect(asked).toEqual({ prompt: 1, answers: [] });
    await run(
      [
        [start, text, ...words],
        [close, end],
      ],
      { tokenizing, calibration },
    );
    expect(asked.answers).toHaveLength(1);
  });

  test("stands for a report that is not believed, and never below what a running one said", async () => {
    const { tokenizing } = tokenizer(null, Promise.resolve(27));
    const lied = await run([[start, text, ...words, close, reported(7, 9e9), end]], { tokenizing });
    expect(lied.settled[0]?.usage).toMatchObject({ inputTokens: 7, outputTokens: 27, source: "counted" });
    const running = await run([[start, text, ...words, reported(7, 40), token, close, end]], { tokenizing });
    expect(running.settled[0]?.usage).toMatchObject({ inputTokens: 7, outputTokens: 40 });
  });

  test("may fail: then what was estimated stands", async () => {
    const { tokenizing } = tokenizer(Promise.reject(new Error("late")), Promise.reject(new Error("late")));
    const { out, settled } = await run(
      [
        [start, text, ...words],
        [close, end],
      ],
      { tokenizing },
    );
    expect(settled[0]).toMatchObject({ outcome: "completed", usage: { inputTokens: 40, outputTokens: 20 } });
    expect(out.at(-1)).toEqual(end);
  });

  test("of a part of a long answer stands for all of it", async () => {
    const { asked, tokenizing } = tokenizer(null, Promise.resolve(1000));
    const page: InferenceEvent = { type: "part-delta", index: 0, delta: "x".repeat(16 * 1024) };
    const keepsText = () => asked.prompt++ === 0;
    const { settled } = await run([[start, text, page, page, page, page, close, end]], { tokenizing, keepsText });
    expect(settled[0]?.usage.outputTokens).toBe(2000);
  });

  test("is not asked of an answer of which nothing could be kept: its estimate stands", async () => {
    const { asked, tokenizing } = tokenizer(null, Promise.resolve(9));
    const { settled } = await run([[start, text, ...words, close, end]], { tokenizing, keepsText: () => false });
    expect(settled[0]?.usage.outputTokens).toBe(20);
    expect(asked.answers).toEqual([]);
  });

  test("also ends an answer at a window's end", async () => {
    const { tokenizing } = tokenizer(Promise.resolve(33), Promise.resolve(4));
    const permits = (tokens: number) => (tokens <= 3 ? true : Promise.resolve(false));
    const { out, settled } = await run([[start, text, ...words, close, end]], { tokenizing, hold: { permits } });
    expect(settled[0]).toMatchObject({ stoppedBy: weekly, usage: { inputTokens: 33, outputTokens: 4 } });
    expect(out.at(-2)).toMatchObject({ type: "usage", usage: { outputTokens: 4 } });
  });
});
