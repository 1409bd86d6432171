/** The order in which engines accept the turns of a conversation. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Turn } from "../../../src/core/inference/request.ts";
import { withInstructionsAtHead, withResultsInPlace } from "../../../src/core/inference/turns.ts";
import { forAll } from "../protocol/for-all.ts";

const system = (text: string): Turn => ({ role: "system", parts: [{ kind: "text", text }] });
const user = (...texts: string[]): Turn => ({ role: "user", parts: texts.map((text) => ({ kind: "text", text })) });
const says = (text: string): Turn => ({ role: "assistant", parts: [{ kind: "text", text }] });
const calls = (...ids: string[]): Turn => ({
  role: "assistant",
  parts: ids.map((callId) => ({ kind: "tool-call", callId, toolName: "f", arguments: "{}" })),
});
const result = (callId: string): Turn => ({ role: "tool", callId, parts: [] });

describe("tool results", () => {
  test("stand directly after the turn that called, whatever was written between", () => {
    const turns = [
      user("a"),
      calls("1", "2"),
      system("note"),
      result("2"),
      user("b"),
      result("1"),
      says("c"),
      user("d"),
    ];
    expect(withResultsInPlace(turns)).toEqual([
      user("a"),
      calls("1", "2"),
      result("2"),
      result("1"),
      system("note"),
      user("b"),
      says("c"),
      user("d"),
    ]);
  });

  test("before the first call stay where they are: which call they answer is not known", () => {
    const turns = [user("a"), result("1"), user("b"), result("2"), says("c")];
    expect(withResultsInPlace(turns)).toEqual(turns);
  });

  test("move nothing of a conversation that is in order, and lose nothing of any", () => {
    const turn = fc.constantFrom(user("a"), system("s"), says("b"), calls("1"), result("1"), result("2"));
    forAll([fc.array(turn, { maxLength: 12 })], 100, (turns) => {
      const once = withResultsInPlace(turns);
      expect(once).toHaveLength(turns.length);
      expect(new Set(once)).toEqual(new Set(turns));
      expect(withResultsInPlace(once)).toEqual(once);
      const others = (list: Turn[]) => list.filter(({ role }) => role !== "tool");
      expect(others(once)).toEqual(others(turns));
    });
  });
});

describe("instructions", () => {
  test("at the head become one turn, and later ones are said by the user, marked", () => {
    const turns = [system("a"), system("b"), user("c"), system("d"), user("e"), says("f"), system("g")];
    expect(withInstructionsAtHead(turns)).toEqual([
      {
        role: "system",
        parts: [
          { kind: "text", text: "a" },
          { kind: "text", text: "b" },
        ],
      },
      user("c", "<system>\nd\n</system>", "e"),
      says("f"),
      user("<system>\ng\n</system>"),
    ]);
    expect(withInstructionsAtHead([user("a")])).toEqual([user("a")]);
  });
});
