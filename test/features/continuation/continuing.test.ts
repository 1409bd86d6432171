/** Joining the texts of two engines gives the original text, wherever it was cut, even in white space. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { AttemptRequest, EngineAnswer, RunRequest } from "../../../src/core/usage/record.ts";
import { Continuing, mayGoOn } from "../../../src/features/continuation/continuing.ts";
import { times } from "../../harness/depth.ts";

type Batch = InferenceEvent[];
const start: InferenceEvent = { type: "response-start", responseId: "r", model: "m", createdAtSeconds: 1 };
const failed: InferenceEvent = { type: "response-failed", fault: new Fault("upstream_unavailable", "It broke off.") };
const usage: InferenceEvent = { type: "usage", usage: { ...noUsage, outputTokens: 7 } };
const text: InferenceEvent = { type: "part-start", index: 0, part: { kind: "text" } };
const says = (delta: string, index = 0): InferenceEvent => ({ type: "part-delta", index, delta });
const closed: InferenceEvent[] = [
  { type: "part-end", index: 0 },
  { type: "response-end", reason: "stop" },
];

const asked = {
  asked: {
    model: { routes: [{ continues: true }] },
    request: { stream: true, turns: [{ role: "user", parts: [] }], stop: [], extra: {} },
    inputTokens: 10,
    inputBytes: 40,
  },
  room: { allowed: 1000, held: 1000 },
  signal: { aborted: false },
} as unknown as AttemptRequest;

/**
 * Fake engines that send these batches of events, one engine after the other. An engine whose last batch ends in a
 * failure counts as broken.
 */
function playing(...engines: ((sent: AttemptRequest) => Batch[])[]) {
  return playingFor(asked, ...engines);
}

function playingFor(attemptRequest: AttemptRequest, ...engines: ((sent: AttemptRequest) => Batch[])[]) {
  const sent: AttemptRequest[] = [];
  const answer = new Continuing((attemptRequest, progress): EngineAnswer => {
    const batches = engines[sent.length]?.(attemptRequest);
    sent.push(attemptRequest);
    if (!batches) throw new Fault("overloaded", "No engine is left.");
    async function* events() {
      for (const batch of batches!) {
        if (batch.at(-1)?.type === "response-failed")
          progress!.tried.push({ upstream: "one", outcome: "broken", ms: 1 });
        yield batch;
      }
    }
    return { progress: progress!, events: events() as unknown as EngineAnswer["events"] };
  }, attemptRequest);
  return { answer, sent };
}

const askedWith = (more: object) =>
  ({
    ...asked,
    asked: { ...asked.asked, request: { ...(asked.asked.request as object), ...more } },
  }) as unknown as AttemptRequest;

async function all({ events }: EngineAnswer): Promise<Batch> {
  const heard: Batch = [];
  for await (const batch of events) heard.push(...batch);
  return heard;
}

const textOf = (events: Batch) => events.map((event) => (event.type === "part-delta" ? event.delta : "")).join("");
const typesOf = (events: Batch) => events.map(({ type }) => type);

describe("an answer that goes on", () => {
  test("has the text that was meant, wherever it was cut, and one part", async () => {
    const words = fc.array(fc.constantFrom("a", "bc", " ", "\n", "ä", "."), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(words, fc.nat(), async (pieces, at) => {
        const meant = pieces.join("");
        const cut = at % (pieces.length + 1);
        const { answer, sent } = playing(
          () => [[start, text, ...pieces.slice(0, cut).map((piece) => says(piece))], [failed]],
          ({ asked: { request } }) => {
            const [part] = request.turns.at(-1)!.parts;
            const given = part?.kind === "text" ? part.text : "";
            expect(given).toBe(given.trimEnd());
            return [
              [start, text, says(meant.slice(given.length))],
              [usage, ...closed],
            ];
          },
        );
        const events = await all(answer);
        expect(textOf(events)).toBe(meant);
        expect(typesOf(events).filter((type) => type !== "part-delta")).toEqual([
          ...["response-start", "part-start", "part-end", "response-end"],
        ] as never);
        expect(sent[1]?.room.allowed).toBeLessThanOrEqual(1000 - cut);
      }),
      { numRuns: times(100, 2000) },
    );
  });

  test("may end in a call, which is a part of its own", async () => {
    const call: InferenceEvent = {
      ...{ type: "part-start", index: 0 },
      part: { kind: "tool-call", callId: "c", toolName: "look" },
    };
    const { answer } = playing(
      () => [[start, text, says("I look.")], [failed]],
      () => [[start, call, says("{}")], [...closed]],
    );
    const events = await all(answer);
    expect(typesOf(events)).toEqual([
      ...["response-start", "part-start", "part-delta", "part-end", "part-start", "part-delta", "part-end"],
      "response-end",
    ] as never);
    expect(events.flatMap((event) => ("index" in event ? [event.index] : []))).toEqual([0, 0, 0, 1, 1, 1]);
  });

  test("goes on twice, and no third time", async () => {
    const breaking = () => [[start, text, says("a")], [failed]];
    const { answer, sent } = playing(breaking, breaking, breaking, breaking);
    const events = await all(answer);
    expect([textOf(events), sent.length, typesOf(events).at(-1)]).toEqual(["aaa", 3, "response-failed"]);
    expect(sent.at(-1)?.asked.request.turns).toHaveLength(2);
  });
});

describe("an answer that goes on, as the caller asked for it:", () => {
  const logprob = (token: string) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [] });
  const chances = (delta: string): InferenceEvent => ({
    ...{ type: "part-delta", index: 0, delta },
    logprobs: [logprob(delta)],
  });

  test("log probabilities follow its text; those of white space that was said are left out with it", async () => {
    const { answer } = playingFor(
      askedWith({ logprobs: { top: 0 } }),
      () => [[start, text, chances("a"), chances("\n")], [failed]],
      () => [[start, text, chances("\n"), chances("b")], closed],
    );
    const deltas = (await all(answer)).filter((event) => event.type === "part-delta");
    expect(deltas.map(({ delta }) => delta)).toEqual(["a", "\n", "b"]);
    expect(deltas.flatMap(({ logprobs = [] }) => logprobs.map(({ token }) => token))).toEqual(["a", "\n", "b"]);
  });

  test("stop sequences go to the next engine, which sees each whole", async () => {
    for (const [said, goesOn] of [
      ["one two", true],
      ["one two\n", true],
      ["one two\nUs", false],
      ["one EN", false],
    ] as const) {
      const { answer, sent } = playingFor(
        askedWith({ stop: ["\nUser:", "END"] }),
        () => [[start, text, says(said)], [failed]],
        () => [[start, text, says(" three")], closed],
      );
      expect([said, typesOf(await all(answer)).at(-1)]).toEqual([said, goesOn ? "response-end" : "response-failed"]);
      expect(sent.at(1)?.asked.request.stop).toEqual(goesOn ? ["\nUser:", "END"] : (undefined as never));
    }
  });

  test("its cap counts what was said, and nothing follows when that has used it up", async () => {
    for (const [outputTokens_max, rest] of [
      [5, 2],
      [4, 1],
      [3, null],
    ] as const) {
      const { answer, sent } = playingFor(
        askedWith({ outputTokens_max }),
        () => [[start, text, says("a"), says("b"), says("c")], [failed]],
        () => [[start, text, says("d")], closed],
      );
      const events = await all(answer);
      expect(textOf(events)).toBe(rest === null ? "abc" : "abcd");
      expect(events.at(-1)!.type).toBe(rest === null ? "response-failed" : "response-end");
      expect(sent.at(1)?.asked.request.outputTokens_max ?? null).toBe(rest);
    }
  });
});

describe("an answer that does not go on ends with the first failure", () => {
  test.each<[string, Batch]>([
    ["reasoning came first", [{ type: "part-start", index: 0, part: { kind: "reasoning" } }, says("hm")]],
    ["the text had ended", [text, says("a"), { type: "part-end", index: 0 }]],
    ["nothing was said", []],
  ])("where %s", async (_, before) => {
    const { answer, sent } = playing(
      () => [[start, ...before], [failed]],
      () => [[start, text, says("b")], closed],
    );
    expect((await all(answer)).at(-1)).toEqual(failed);
    expect(sent).toHaveLength(1);
  });

  test("where no engine is left, or the next one says nothing", async () => {
    const none = playing(() => [[start, text, says("a")], [failed]]);
    expect((await all(none.answer)).at(-1)).toEqual(failed);
    const other: InferenceEvent = { type: "response-failed", fault: new Fault("capacity_exceeded", "It is full.") };
    const full = playing(
      () => [[start, text, says("a")], [failed]],
      () => [[start, other]],
    );
    expect(typesOf(await all(full.answer))).toEqual([
      ...["response-start", "part-start", "part-delta", "response-failed"],
    ] as never);
  });
});

test("only a streamed text without a form may go on, and only where an engine can", () => {
  const request = asked.asked.request as unknown as Record<string, unknown>;
  const may = (more: object, model: unknown = asked.asked.model) =>
    mayGoOn({ model, request: { ...request, ...more } } as unknown as RunRequest);
  expect(may({})).toBe(true);
  for (const more of [
    { stream: false },
    { format: { kind: "json_object" } },
    { extra: { guided_json: {} } },
    { extra: { structured_outputs: {} } },
    { extra: { ebnf: "" } },
    { toolChoice: { kind: "required" } },
    { toolChoice: { kind: "allowed", mode: "required", names: [] } },
    { compaction: {} },
    { passed: {} },
    { turns: [{ role: "assistant", parts: [] }] },
  ])
    expect([more, may(more)]).toEqual([more, false]);
  expect(may({ extra: { min_p: 0.1 } })).toBe(true);
  expect(may({}, { routes: [{}] })).toBe(false);
});
