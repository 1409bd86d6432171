/** No client ever gets half a character. test/engines/odd.test.ts cuts texts anywhere, also within a character. */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { WholeCharacters } from "../../../src/core/protocol/answer.ts";

const delta = (text: string, index = 0): InferenceEvent => ({ type: "part-delta", index, delta: text });
const end = (index = 0): InferenceEvent => ({ type: "part-end", index });
const over: InferenceEvent = { type: "response-end", reason: "stop" };

function mended(...batches: InferenceEvent[][]): InferenceEvent[] {
  const characters = new WholeCharacters();
  return batches.flatMap((batch) => characters.mend(batch));
}

test("halves in two deltas are joined, also where another part is between them", () => {
  expect(mended([delta("a\ud83d")], [delta("b", 1)], [delta("\ude00c"), end()])).toEqual([
    delta("a"),
    delta("b", 1),
    delta("😀c"),
    end(),
  ]);
});

test("a half that stays alone is U+FFFD: at its part's end, at the answer's, before another character", () => {
  expect(mended([delta("a\ud83d")], [end(), over])).toEqual([delta("a"), delta("\ufffd"), end(), over]);
  expect(mended([delta("a\ud83d")], [over])).toEqual([delta("a"), delta("\ufffd"), over]);
  expect(mended([delta("\ud83d")], [delta("x")])).toEqual([delta("\ufffdx")]);
  expect(mended([delta("x\ude00y")])).toEqual([delta("x\ufffdy")]);
});

test("whole text is handed on as it is", () => {
  const batch = [delta("a😀"), delta(""), end()];
  expect(new WholeCharacters().mend(batch)).toBe(batch);
});
