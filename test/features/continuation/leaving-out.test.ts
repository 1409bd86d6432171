/**
 * The remaining part of a conversation that exceeds the context window is complete in itself, in order, and has a note
 * about the parts that were left out.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { instructionTurn, summaryTurn } from "../../../src/core/inference/compaction.ts";
import type { InferenceRequest, Turn } from "../../../src/core/inference/request.ts";
import { bytesOf, leaveOut } from "../../../src/features/continuation/leaving-out.ts";
import { forAll } from "../../core/protocol/for-all.ts";

type Request = Pick<InferenceRequest, "turns" | "compaction">;

const text = (said: string) => ({ kind: "text" as const, text: said });
const said = (words: string): Turn => ({ role: "user", parts: [text(words)] });
const call: Turn = { role: "assistant", parts: [{ kind: "tool-call", callId: "a", toolName: "f", arguments: "{}" }] };
const result = (words: string): Turn => ({ role: "tool", callId: "a", parts: [text(words)] });
const words = fc.string({ minLength: 1, maxLength: 400 });
const callId = fc.constantFrom("a", "b", "c", "d");
const turn: fc.Arbitrary<Turn> = fc.oneof(
  words.map(said),
  words.map((said): Turn => ({ role: "assistant", parts: [text(said)] })),
  fc.tuple(fc.uniqueArray(callId, { minLength: 1 }), words).map(
    ([ids, written]): Turn => ({
      role: "assistant",
      parts: ids.map((id) => ({ kind: "tool-call", callId: id, toolName: "f", arguments: written })),
    }),
  ),
  fc.tuple(callId, words).map(([id, said]): Turn => ({ role: "tool", callId: id, parts: [text(said)] })),
  words.map((said): Turn => ({ role: "user", parts: [{ kind: "image", url: `data:image/png;base64,${said}` }] })),
);
const system: Turn = { role: "system", parts: [text("Be brief.")] };

/** The turns in a form that callers can send: results of tools without an earlier call are removed. */
function withoutOrphans(turns: readonly Turn[]): Turn[] {
  const called = new Set<string>();
  return turns.filter((each) => {
    if (each.role === "assistant")
      for (const part of each.parts) if (part.kind === "tool-call") called.add(part.callId);
    return each.role !== "tool" || called.has(each.callId);
  });
}

const conversation = fc
  .record({
    head: fc.constantFrom<Turn[][]>([], [system], [system, system]),
    told: fc.array(turn, { maxLength: 30 }).map(withoutOrphans),
    summaryAt: fc.option(fc.nat({ max: 30 })),
  })
  .map(({ head, told, summaryAt }) => {
    const summary = summaryAt === null ? null : summaryTurn("what was");
    const all = summary ? [...told.slice(0, summaryAt!), summary, ...told.slice(summaryAt!)] : told;
    return { head, told: all, summary };
  });

const share = fc.double({ min: 0, max: 1, noNaN: true });
const requestOf = ({ head, told, summary }: { head: Turn[]; told: Turn[]; summary: Turn | null }): Request => ({
  turns: [...head, ...told, instructionTurn()],
  compaction: { summary, leftOutTurns: 0, notice: null },
});

describe("what is left out", () => {
  test("is the oldest, however often: the rest keeps its order, its instructions, its summary and its calls", () => {
    forAll([conversation, fc.array(share, { minLength: 1, maxLength: 4 })], 500, (of, shares) => {
      const request = requestOf(of);
      const before = [...request.turns];
      for (const each of shares) leaveOut(request, each);
      const { turns } = request;
      const { leftOutTurns, notice, summary } = request.compaction!;
      const kept = turns.filter((each) => each !== notice);
      expect(kept).toEqual(before.filter((each) => kept.includes(each)));
      expect(leftOutTurns).toBe(before.length - kept.length);
      expect(kept.slice(0, of.head.length)).toEqual(of.head);
      expect(kept.at(-1)).toBe(before.at(-1)!);
      expect(withoutOrphans(turns)).toEqual(turns);
      if (summary) expect(kept).toContain(summary);
      // The newest turn is kept. Results whose calls were left out are not.
      const newest = of.told.at(-1);
      if (newest && newest.role !== "tool") expect(kept).toContain(newest);
      expect(turns.filter((each) => each === notice)).toHaveLength(leftOutTurns > 0 ? 1 : 0);
      if (notice) expect(turns[of.head.length]).toBe(notice);
    });
  });

  test("is as much as was asked, and no more", () => {
    const told = Array.from({ length: 10 }, (_, at) => said(`${at}`.repeat(1_000)));
    const request = requestOf({ head: [], told, summary: null });
    expect(leaveOut(request, 0.5)).toBeCloseTo(0.5, 1);
    expect(request.turns.slice(1, -1)).toEqual(told.slice(5));
    expect(leaveOut(request, 0.4)).toBeCloseTo(0.4, 1);
    expect(request.turns.slice(1, -1)).toEqual(told.slice(8));
    expect(request.compaction).toMatchObject({ leftOutTurns: 8 });
    expect(JSON.stringify(request.turns[0])).toContain("8 oldest messages");
  });

  test("is nothing where nothing else would be left", () => {
    for (const told of [[], [said("hi")], [call, result("long ".repeat(1_000))], [summaryTurn("x")]]) {
      const request = requestOf({ head: [system], told, summary: null });
      const before = [...request.turns];
      expect(leaveOut(request, 0)).toBe(1);
      expect(request.turns).toEqual(before);
    }
  });

  test("counts an image as what it costs in tokens, and not by its bytes", () => {
    const image: Turn = {
      role: "user",
      parts: [{ kind: "image", url: `data:image/png;base64,${"A".repeat(1_000_000)}` }],
    };
    const told = [image, said("x".repeat(100_000)), said("y")];
    const request = requestOf({ head: [], told, summary: null });
    expect(bytesOf(told)).toBeGreaterThan(1_100_000);
    leaveOut(request, 0.5);
    expect(request.turns.slice(1, -1)).toEqual(told.slice(2));
  });
});

test("a model is told what to write, last of all", () => {
  const [part, ...others] = instructionTurn().parts;
  expect(others).toEqual([]);
  expect(part).toMatchObject({ kind: "text", text: expect.stringMatching(/Goal:[\s\S]*Verbatim:/) });
});

test("a result stays while its call stays", () => {
  const found = result("found");
  const request = requestOf({ head: [], told: [said("x".repeat(1_000)), call, found], summary: null });
  leaveOut(request, 0.5);
  expect(request.turns).toContain(call);
  expect(request.turns).toContain(found);
});
