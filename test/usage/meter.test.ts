/** However a stream ends, it is settled once, at what was produced and forwarded. */
import { describe, expect, test } from "bun:test";
import { compact } from "../../src/inference/compact.ts";
import type { InferenceEvent } from "../../src/inference/event.ts";
import { Fault } from "../../src/inference/fault.ts";
import type { Usage } from "../../src/inference/usage.ts";
import { type Ending, type Hold, meter } from "../../src/usage/meter.ts";
import {
  type OutputCalibration,
  outputCalibration,
  uncalibrated_code_units_per_token,
} from "../../src/usage/output-calibration.ts";
import { grammarProblem } from "../protocol/grammar.ts";

const start: InferenceEvent = { type: "response-start", responseId: "r", model: "acme/m", createdAtSeconds: 1 };
const text: InferenceEvent = { type: "part-start", index: 0, part: { kind: "text" } };
const token: InferenceEvent = { type: "part-delta", index: 0, delta: "word " };
const close: InferenceEvent = { type: "part-end", index: 0 };
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const failed: InferenceEvent = { type: "response-failed", fault: new Fault("upstream_unavailable", "gone") };
const reported = (inputTokens: number, outputTokens: number): InferenceEvent => ({
  type: "usage",
  usage: {
    inputTokens,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens: 0,
    source: "reported",
  },
});

async function run(
  batches: InferenceEvent[][],
  options: {
    hold?: Partial<Hold>;
    leaveAfter?: number;
    callerLeft?: boolean;
    windowTokens?: number;
    calibration?: OutputCalibration;
  } = {},
) {
  const settled: Ending[] = [];
  const progress: Usage[] = [];
  let upstreamClosed = false;
  async function* upstream() {
    try {
      yield* batches;
    } finally {
      upstreamClosed = true;
    }
  }
  const out: InferenceEvent[] = [];
  let count = 0;
  const metered = meter({
    events: upstream(),
    hold: { permits: () => true, progress: (usage) => void progress.push(usage), ...options.hold },
    model: "acme/m",
    contextTokens: 4096,
    inputTokensEstimate: 40,
    calibration: options.calibration ?? outputCalibration(),
    windowTokens: options.windowTokens ?? null,
    callerLeft: () => options.callerLeft ?? options.leaveAfter !== undefined,
    firstPart: () => {},
    over: () => void settled.push(metered.ending()),
  });
  for await (const batch of metered.events) {
    out.push(...batch);
    count += 1;
    if (count === options.leaveAfter) break;
  }
  return { out, settled, progress, upstreamClosed };
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
      },
    ]);
    expect(grammarProblem(out)).toBeNull();
  });

  test("an explicit report of 0 stays 0", async () => {
    const { settled } = await run([[start, text, token, close, reported(0, 0), end]]);
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, source: "reported" });
  });

  test("without a report, what the client reads is what the book says", async () => {
    const { settled, out } = await run([[start, text], [token], [token], [token, close, end]]);
    const shown = out.find((event) => event.type === "usage");
    expect(shown).toEqual({ type: "usage", usage: settled[0]!.usage });
    expect(settled[0]?.usage).toMatchObject({ inputTokens: 40, outputTokens: 3, source: "counted" });
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

  test("a failure after output charges what was produced", async () => {
    const { settled } = await run([[start, text, token], [token], [failed]]);
    expect(settled[0]).toMatchObject({ outcome: "failed", usage: { inputTokens: 40, outputTokens: 2 } });
  });

  test("a window's end cuts the answer with `length`, before what it does not cover is forwarded", async () => {
    const { settled, out, upstreamClosed } = await run([[start, text], [token], [token], [token], [close, end]], {
      hold: { permits: (tokens) => (tokens <= 2 ? true : Promise.resolve(false)) },
    });
    expect(out.filter((event) => event.type === "part-delta")).toHaveLength(2);
    expect(out.at(-1)).toEqual({ type: "response-end", reason: "length" });
    expect(grammarProblem(out)).toBeNull();
    expect(settled[0]).toMatchObject({ outcome: "completed", stoppedBy: "usage_window", usage: { outputTokens: 2 } });
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
      expect(settled[0]).toMatchObject({ stoppedBy: "usage_window", usage: { outputTokens: 3 } });
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
    expect(await stopped(whole(300, "length"), 300)).toBe("usage_window");
    expect(await stopped(whole(300, "stop"), 300)).toBeNull();
    expect(await stopped(whole(200, "length"), 300)).toBeNull();
    expect(await stopped(whole(300, "length"))).toBeNull();
  });

  test("code units count where an engine sends many tokens a delta", async () => {
    const long: InferenceEvent = {
      type: "part-delta",
      index: 0,
      delta: "x".repeat(100 * uncalibrated_code_units_per_token),
    };
    const { settled } = await run([[start, text, long]], { leaveAfter: 1 });
    expect(settled[0]?.usage).toMatchObject({ outputTokens: 100, source: "estimated" });
  });
});

describe("the calibration", () => {
  test("an engine that sends a token a delta is counted by deltas alone", () => {
    const calibration = outputCalibration();
    calibration.observe("m", { tokens: 100, deltas: 100, codeUnits: 300 });
    expect(calibration.tokens("m", 7, 1000)).toBe(7);
  });

  test("one that bundles is counted by its ratio of code units", () => {
    const calibration = outputCalibration();
    calibration.observe("m", { tokens: 100, deltas: 20, codeUnits: 400 });
    expect(calibration.tokens("m", 5, 100)).toBe(25);
  });

  test("reasoning that was reported and never shown does not make what is shown dearer", async () => {
    const words = Array<InferenceEvent>(20).fill(token);
    // Without its reasoning told apart, a report of so many tokens for so few code units is not plausible.
    for (const [outputTokens, reasoningTokens] of [
      [1020, 0],
      [1020, 1000],
      [120, 100],
    ] as const) {
      const calibration = outputCalibration();
      const report = reported(7, outputTokens);
      if (report.type === "usage") report.usage.reasoningTokens = reasoningTokens;
      await run([[start, text, ...words, close, report, end]], { calibration });
      const { settled } = await run([[start, text, ...words]], { calibration, leaveAfter: 1 });
      expect(settled[0]?.usage).toMatchObject({ outputTokens: 20, source: "counted" });
    }
  });
});
