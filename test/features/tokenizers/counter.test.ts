/**
 * The workers that count tokens: bodies are counted in parallel, and when a worker is lost, its counts are repeated.
 */
import { describe, expect, test } from "bun:test";
import {
  counterSettings,
  type Thread,
  tokenCounter,
  type WorkerAnswer,
  type WorkerQuestion,
} from "../../../src/features/tokenizers/counter.ts";
import { startThread } from "../../../src/features/tokenizers/thread.ts";
import { until } from "../../harness/until.ts";

const asked = (text = "foo") => ({
  body: new TextEncoder().encode(JSON.stringify({ model: "a/b", messages: [{ role: "user", content: text }] })),
  of: "messages" as const,
  options: {},
  tokenizers: { "a/b": "o200k_harmony" },
});
const examined = { model: "a/b", textTokens: 7, media: { bytes: 0, tokens: 0 } };

/** Fake threads whose messages the test sends. */
function threads() {
  const all: (Thread & { questions: WorkerQuestion[]; ended: boolean; answer(): void })[] = [];
  const start = (): Thread => {
    const questions: WorkerQuestion[] = [];
    const thread = {
      questions,
      ended: false,
      onmessage: null as Thread["onmessage"],
      onerror: null as Thread["onerror"],
      postMessage: (question: WorkerQuestion) => void questions.push(question),
      terminate: () => {
        thread.ended = true;
      },
      answer: () => thread.onmessage?.({ data: { number: questions.at(-1)!.number, examined } satisfies WorkerAnswer }),
    };
    all.push(thread);
    return thread;
  };
  return { all, start };
}

describe("the crew", () => {
  test("two bodies are counted side by side, the third waits for the first that is done", async () => {
    const { all, start } = threads();
    const counter = tokenCounter(start, () => {});
    const answers = [counter.examine(asked()), counter.examine(asked()), counter.examine(asked())];
    expect(all.map((thread) => thread.questions.length)).toEqual([1, 1]);
    all[1]!.answer();
    expect(await answers[1]!).toEqual(examined);
    expect(all.map((thread) => thread.questions.length)).toEqual([1, 2]);
    all[0]!.answer();
    all[1]!.answer();
    expect(await Promise.all(answers)).toEqual([examined, examined, examined]);
    counter.stop();
    expect(all.every((thread) => thread.ended)).toBe(true);
  });

  test("a body that costs a worker its life is refused, and the next gets a new worker", async () => {
    const { all, start } = threads();
    const lost: unknown[] = [];
    const counter = tokenCounter(start, (cause) => void lost.push(cause), { ...counterSettings, workers_max: 1 });
    const [first, second] = [counter.examine(asked()), counter.examine(asked())];
    all[0]!.onerror?.({ message: "out of memory" });
    expect(first).rejects.toMatchObject({ code: "overloaded" });
    expect([all.length, lost.length]).toEqual([2, 1]);
    all[1]!.answer();
    expect(await second).toEqual(examined);
    counter.stop();
  });

  test("one that takes too long is refused in the same way", async () => {
    const { all, start } = threads();
    const counter = tokenCounter(start, () => {}, { ...counterSettings, count_ms: 20 });
    expect(counter.examine(asked())).rejects.toMatchObject({ code: "overloaded" });
    await until(() => all[0]!.ended, 5_000, "the worker to end");
    expect(all[0]!.ended).toBe(true);
    counter.stop();
  });

  test("a worker without work is ended", async () => {
    const { all, start } = threads();
    const counter = tokenCounter(start, () => {}, { ...counterSettings, idle_ms: 10 });
    const answer = counter.examine(asked());
    all[0]!.answer();
    await answer;
    await until(() => all[0]!.ended, 5_000, "the worker to end");
    counter.stop();
  });

  test.each([
    ["too many bodies", { waiting_max: 1 }],
    ["too many bytes", { waiting_bytes_max: 100 }],
  ])("%s that wait are refused, to be tried again", async (_name, limit) => {
    const { start } = threads();
    const counter = tokenCounter(start, () => {}, { ...counterSettings, workers_max: 1, ...limit });
    counter.examine(asked());
    counter.examine(asked());
    expect(() => counter.examine(asked())).toThrow(expect.objectContaining({ code: "overloaded" }));
    counter.stop();
  });

  test("organizations take turns; settlements go first, three in a row; one organization leaves room to others", () => {
    const { all, start } = threads();
    const counter = tokenCounter(start, () => {}, { ...counterSettings, workers_max: 1, waiting_max: 16 });
    const of = (organization: string, of: "messages" | "answer" = "messages") =>
      void counter.examine({ ...asked(), organization, of });
    for (let one = 0; one < 5; one++) of("acme");
    expect(() => of("acme")).toThrow(expect.objectContaining({ code: "overloaded" }));
    for (let one = 0; one < 4; one++) of("acme", "answer");
    expect(() => of("acme", "answer")).toThrow(expect.objectContaining({ code: "overloaded" }));
    of("globex", "answer");
    of("globex");
    for (let one = 0; one < 10; one++) all[0]!.answer();
    const turns = all[0]!.questions.map(({ asked }) => `${asked.organization} ${asked.of}`);
    const [a, g] = ["acme answer", "globex answer"];
    expect(turns.slice(0, 6)).toEqual(["acme messages", a, g, a, "acme messages", a]);
    expect(turns.slice(6)).toEqual([a, "globex messages", "acme messages", "acme messages", "acme messages"]);
    counter.stop();
  });
});

test("a real worker counts, refuses in the same words, and survives what it refuses", async () => {
  const counter = tokenCounter(
    () => startThread(false),
    (cause) => {
      throw cause;
    },
  );
  const broken = counter.examine({ ...asked(), body: new TextEncoder().encode('{"model": 1}') });
  expect(broken).rejects.toMatchObject({ code: "invalid_value", details: { param: "model" } });
  const all = await Promise.all(Array.from({ length: 24 }, () => counter.examine(asked())));
  expect(new Set(all.map((one) => one.textTokens))).toEqual(new Set([68]));
  counter.stop();
}, 30_000);
