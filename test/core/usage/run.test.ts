/** Each granted run is settled, once: however its answer ends, and whichever side leaves. */
import { describe, expect, test } from "bun:test";
import type { Admitting, Entry } from "../../../src/core/admission/entrance.ts";
import type { Settlement } from "../../../src/core/admission/reservation.ts";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage, type Usage } from "../../../src/core/inference/usage.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { outputCalibration } from "../../../src/core/usage/output-calibration.ts";
import {
  type Caller,
  type Ended,
  initialProgress,
  type RunRequest,
  type Tried,
} from "../../../src/core/usage/record.ts";
import { type RunParts, runs } from "../../../src/core/usage/run.ts";

const begun: InferenceEvent = { type: "response-start", responseId: "r", model: "acme/m", createdAtSeconds: 1 };
const text: InferenceEvent = { type: "part-start", index: 0, part: { kind: "text" } };
const token: InferenceEvent = { type: "part-delta", index: 0, delta: "word " };
const close: InferenceEvent = { type: "part-end", index: 0 };
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const reported: InferenceEvent = {
  type: "usage",
  usage: {
    ...noUsage,
    inputTokens: 5,
    cachedInputTokens: 20,
    cacheWriteTokens: 3,
    outputTokens: 2,
    source: "reported",
  },
};
const whole = [[begun, text, token, token, close, reported, end]];

const request = { stream: true, turns: [], tools: [], sampling: {}, stop: [], extra: {}, needs: [] };
const asked = {
  requestId: "req_1",
  principal: { key: { id: "key_1" }, organization: { id: "org_1" } },
  operation: "chat.completions",
  request: { ...request, model: "acme/m" },
  model: {
    id: "acme/m",
    contextTokens: 4096,
    outputTokens_max: 1000,
    prices: { input: 100_000, cachedInput: 10_000, cacheWrite: 1_000_000, output: 1000 },
  },
  plan: { ...noLimits, name: "pro" },
  inputTokens: 60,
  inputTokensExpected: 40,
  media: { bytes: 0, tokens: 0 },
  inputBytes: 120,
  outputTokensAllowed: 1000,
} as unknown as RunRequest;

/** The request of a run. Each run gets a new one, because it consumes its request. */
const said = () => ({ ...asked.request, turns: [{ role: "user" as const, parts: [] }] });

function bench(
  batches: InferenceEvent[][],
  options: {
    refusal?: Fault;
    early?: boolean;
    counted?: () => Promise<number>;
    isFinal?: () => boolean;
    tried?: Tried[];
    elapsed_ms?: () => number;
  } = {},
) {
  const settlements: Settlement[] = [];
  const learned: Usage[] = [];
  const ended: Ended[] = [];
  const lost = new Cancellation();
  const leaving = new Cancellation();
  const halted = new Cancellation();
  const engine = { asked: 0, isOpen: false };
  async function* events(): AsyncGenerator<InferenceEvent[], void, void> {
    engine.asked += 1;
    engine.isOpen = true;
    try {
      yield* batches;
    } finally {
      engine.isOpen = false;
    }
  }
  const caller: Caller & { left: boolean } = {
    signal: leaving,
    left: false,
    halted,
    end(fault) {
      halted.abort(fault);
      leaving.abort(fault);
    },
    elapsed_ms: options.elapsed_ms ?? (() => 7.4),
    keepsText: () => true,
    granted() {},
    ended: (one) => void ended.push(one),
  };
  const parts = {
    admission: {
      async enter(_: Entry, admitting: Admitting) {
        if (options.early) admitting.ahead?.(false);
        await Promise.resolve();
        if (options.refusal) throw options.refusal;
        return {
          grant: { source: "plan", outputTokens: 256 },
          rates: { requests: null, tokens: null },
          signal: lost,
          permits: () => true,
          stoppingLimit: () => ({ limitedBy: "organization", window: "week" }),
          progress() {},
          restart() {},
          assertHeld: () => lost.throwIfAborted(),
          settle: async (settlement: Settlement) => void settlements.push(settlement),
        };
      },
    },
    inputEstimate: { observe: (...seen: [unknown, number, unknown, Usage]) => void learned.push(seen[3]) },
    tokenizing: () =>
      options.counted
        ? { hasPrompt: true, prompt: options.counted, answer: () => Promise.reject(new Error("not counted")) }
        : null,
    outputCalibration: outputCalibration(),
    watcher: { granted() {}, ended() {} },
    open: () => ({
      events: events(),
      progress: {
        ...initialProgress(),
        route: { upstream: { name: "main" } },
        tried: options.tried ?? [],
        attempts: options.tried?.length ?? 1,
        get isFinal() {
          return options.isFinal?.() ?? true;
        },
        get isAtEngine() {
          return engine.asked > 0;
        },
      },
    }),
  } as unknown as RunParts;
  const leave = () => {
    caller.left = true;
    leaving.abort(new Fault("internal_error", "the caller left"));
  };
  const start = (request = asked.request) => runs(parts).start({ ...asked, request }, caller);
  return { start, settlements, learned, ended, lost, engine, caller, leave };
}

async function read(run: AsyncDisposable & { events: AsyncIterable<unknown> }, batches = Number.POSITIVE_INFINITY) {
  await using _ = run;
  let count = 0;
  for await (const __ of run.events) if (++count >= batches) break;
}

describe("a run that was granted is settled once", () => {
  test("when its answer is complete: at what the engine reported, each class of tokens at its own price", async () => {
    const { start, settlements, learned, ended } = bench(whole);
    await read(await start());
    expect(settlements).toMatchObject([
      {
        nanos: 5 * 100 + 20 * 10 + 3 * 1000 + 2 * 1,
        outcome: "completed",
        errorCode: null,
        route: { upstream: "main", firstPart_ms: 0 },
      },
    ]);
    expect(learned).toHaveLength(1);
    expect(ended).toMatchObject([{ outcome: "completed", model: "acme/m" }]);
  });

  test("when its caller left before any output: the engine has read the input", async () => {
    const { start, settlements, learned, engine, leave } = bench([[begun], [text, token]]);
    const run = await start();
    await run.events.next();
    leave();
    await run[Symbol.asyncDispose]();
    expect(settlements).toMatchObject([
      { nanos: 40 * 100, outcome: "cancelled", errorCode: null, route: { firstPart_ms: null } },
    ]);
    expect(engine.isOpen).toBe(false);
    expect(learned).toEqual([]);
  });

  test("when its caller left and its prompt can be counted: at the count, or at what was expected where that fails", async () => {
    for (const [counted, usage] of [
      [() => Promise.resolve(33), { inputTokens: 33, source: "counted" }],
      [() => Promise.reject(new Error("the worker is gone")), { inputTokens: 40, source: "estimated" }],
    ] as const) {
      const { start, settlements, leave } = bench([[begun, text, token], [token]], { counted });
      const run = await start();
      await run.events.next();
      leave();
      await run[Symbol.asyncDispose]();
      expect(settlements).toMatchObject([
        { nanos: usage.inputTokens * 100 + 1, outcome: "cancelled", usage: { ...usage, outputTokens: 1 } },
      ]);
    }
  });

  test("when its caller left while the ledger decided: nobody was asked, and nothing is charged", async () => {
    const { start, settlements, engine, leave } = bench(whole);
    const starting = start();
    leave();
    await (await starting)[Symbol.asyncDispose]();
    expect(settlements).toMatchObject([{ nanos: 0, outcome: "cancelled" }]);
    expect(engine.asked).toBe(0);
  });

  test("when it is given up before it is read: a failure of ours, and free", async () => {
    const { start, settlements, caller } = bench(whole);
    await (await start())[Symbol.asyncDispose]();
    expect(settlements).toMatchObject([{ nanos: 0, outcome: "failed", errorCode: "internal_error" }]);
    expect(caller.signal.aborted).toBe(true);
  });

  test("when its reader stops in the middle, and when whoever owns it throws", async () => {
    const { start, settlements, engine } = bench([[begun, text, token], [token], [close, end]]);
    await read(await start(), 1);
    expect(settlements).toMatchObject([{ nanos: 40 * 100 + 1, outcome: "failed" }]);
    expect(engine.isOpen).toBe(false);
    const other = bench(whole);
    const owner = async () => {
      await using _ = await other.start();
      throw new Error("a defect");
    };
    expect(owner()).rejects.toThrow("a defect");
    await Bun.sleep(0);
    expect(other.settlements).toHaveLength(1);
  });
});

test("the record of an answer that took two attempts names both, and that of a first attempt its engine alone", async () => {
  const tried: Tried[] = [
    { upstream: "spare", outcome: "failed", ms: 3 },
    { upstream: "main", outcome: "answered", ms: 9 },
  ];
  const twice = bench(whole, { tried });
  await read(await twice.start());
  expect(twice.settlements[0]!.route).toEqual({ upstream: "main", attempts: 2, firstPart_ms: 0, tried });
  expect(twice.ended[0]!.tried).toEqual(tried);
  const once = bench(whole, { tried: tried.slice(1) });
  await read(await once.start());
  expect(once.settlements[0]!.route).toEqual({ upstream: "main", attempts: 1, firstPart_ms: 0 });
});

test("a record counts the first part from the admission, as it counts the end; everything else from the arrival", async () => {
  let waited_ms = 0;
  const { start, settlements, ended } = bench(whole, { elapsed_ms: () => waited_ms });
  waited_ms = 400;
  const run = await start();
  waited_ms = 430;
  await read(run);
  expect(settlements[0]!.route).toMatchObject({ firstPart_ms: 30 });
  expect(ended[0]).toMatchObject({ firstPart_ms: 430 });
});

test("a run whose lease is lost ends its caller's work, with the reason", async () => {
  const { start, lost, caller } = bench(whole);
  await using _ = await start();
  const fault = new Fault("storage_unavailable", "lost");
  lost.abort(fault);
  expect(caller.signal.reason).toBe(fault);
});

test("an engine that was asked ahead of a grant that is then refused is let go, and nothing is settled", async () => {
  const refusal = new Fault("usage_limit_reached", "full");
  const { start, settlements, engine, caller } = bench(whole, { refusal, early: true });
  expect(start()).rejects.toBe(refusal);
  await Bun.sleep(1);
  expect(engine).toEqual({ asked: 1, isOpen: false });
  expect(settlements).toEqual([]);
  expect(caller.signal.reason).toBe(refusal);
});

test("an engine that was asked ahead of its grant is read from the beginning", async () => {
  const { start, settlements, engine } = bench(whole, { early: true });
  const run = await start();
  expect(engine).toEqual({ asked: 1, isOpen: true });
  expect((await run.events.next()).value).toContain(begun);
  await read(run);
  expect(engine).toEqual({ asked: 1, isOpen: false });
  expect(settlements).toMatchObject([{ outcome: "completed", usage: { outputTokens: 2 } }]);
});

test("an engine that was asked ahead of its grant is let go where its answer is read to the middle, or not at all", async () => {
  for (const batches of [0, 1]) {
    const { start, engine } = bench([[begun, text, token], [token], [close, end]], { early: true });
    await using run = await start();
    for (let count = 0; count < batches; count++) await run.events.next();
    await run[Symbol.asyncDispose]();
    expect(engine).toEqual({ asked: 1, isOpen: false });
  }
});

test("the conversation is kept while another engine may be asked, also after the first part", async () => {
  const request = { ...said(), stream: false };
  let isFinal = false;
  const batches = [[begun, text, token], [begun], [begun, text, token], [token, close, reported, end]];
  const { start } = bench(batches, { isFinal: () => isFinal });
  await using run = await start(request);
  await run.events.next();
  expect(request.turns).toHaveLength(1);
  await run.events.next();
  isFinal = true;
  await run.events.next();
  expect(request.turns).toHaveLength(0);
});

test("the conversation is let go at the first part, unless it may be counted when the caller leaves", async () => {
  for (const counted of [undefined, async () => 7]) {
    const request = said();
    const { start } = bench([[begun], [text, token], [token, close, reported, end]], {
      ...(counted ? { counted } : {}),
    });
    await using run = await start(request);
    await run.events.next();
    expect(request.turns).toHaveLength(1);
    await run.events.next();
    expect(request.turns).toHaveLength(counted ? 1 : 0);
  }
});
