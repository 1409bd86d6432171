/**
 * A client that disconnects in mid-answer is charged for the tokens that the engine produced until then, within 15
 * percent, on three public vocabularies, in prose, code and six languages, however many tokens its engine sends at a
 * time; within 5 percent if the engine sends them one by one and separates its thinking. Short answers whose tokens are
 * not in their text do not change these errors.
 */
import { describe, expect, test } from "bun:test";
import { seed } from "../../harness/depth.ts";
import { Engine, kinds, vocabularies } from "./leavers.ts";

const within = (share: number, error: number, said: string) =>
  expect(Math.abs(share - 1), `${said}: ${share.toFixed(3)} (seed ${seed})`).toBeLessThanOrEqual(error);

describe.each(Object.keys(vocabularies))("%s", (name) => {
  const vocabulary = vocabularies[name]!;

  test.each([1, 4])("an engine that sends %d tokens at a time", (tokens_per_delta) => {
    for (const [kind, sentences] of Object.entries(kinds)) {
      const engine = new Engine(vocabulary, { tokens_per_delta, seed });
      engine.answers(sentences, 30);
      engine.oddAnswers(sentences, 60);
      within(engine.leavers(sentences), 0.15, kind);
    }
  });

  test("an engine that tells its thinking apart", () => {
    for (const [kind, sentences] of Object.entries(kinds)) {
      const engine = new Engine(vocabulary, { seed });
      engine.oddAnswers(sentences, 100);
      // A Chinese character can take up to three tokens of cl100k, so the deltas are not single tokens; the engine's
      // answers have to teach that first.
      if (name === "cl100k") engine.answers(sentences, 20);
      within(engine.leavers(sentences, { thinks: true }), 0.05, kind);
    }
  });

  test("an engine that sends its tokens one by one, as many clients in many languages ask it", () => {
    const engine = new Engine(vocabulary, { seed });
    for (let time = 0; time < 10; time++) for (const sentences of Object.values(kinds)) engine.answers(sentences, 3);
    for (const [kind, sentences] of Object.entries(kinds)) {
      // These three languages share what the service learns of their script, and cl100k cuts their characters
      // differently.
      const error = ["Chinese", "Japanese", "Korean"].includes(kind) ? 0.1 : 0.05;
      within(engine.leavers(sentences), error, kind);
      within(engine.leavers(sentences, { thinks: true }), error, kind);
    }
  });

  test("an engine that answers everything at once, as many clients in many languages ask it", () => {
    const engine = new Engine(vocabulary, { tokens_per_delta: 4, seed });
    for (let time = 0; time < 10; time++)
      for (const sentences of Object.values(kinds)) {
        engine.answers(sentences, 3);
        engine.oddAnswers(sentences, 3);
      }
    const shares = Object.values(kinds).map((sentences) => engine.leavers(sentences));
    within(shares.reduce((sum, share) => sum + share, 0) / shares.length, 0.15, "all of them");
  });
});
