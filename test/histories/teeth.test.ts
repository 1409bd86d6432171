// Histories would notice: each of the nine rules of the protocol, taken out in one way or several, ends in a violation.

import { describe, expect, test } from "bun:test";
import { runHistory } from "./history.ts";
import { mutations } from "./mutations.ts";
import { keepInWords, keepOf, shortest } from "./shrink.ts";
import { caught } from "./teeth.ts";

const histories_max = 5_000;

describe("a rule that is taken out is missed", () => {
  test("all nine are", () => {
    const taken = new Set(Object.values(mutations).map(({ rule }) => rule));
    expect([...taken].sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  for (const [name, { rule, seenAs }] of Object.entries(mutations)) {
    test(`rule ${rule}: ${name}`, () => {
      const found = caught(name, histories_max);
      expect(found).not.toBeNull();
      expect(seenAs).toContain(found!.violation.rule);
    }, 60_000);
  }
});

describe("a history", () => {
  const { defects } = mutations["a node knows no deadline"]!;
  const { histories: seed } = caught("a node knows no deadline", histories_max)!;

  test("is replayed by its seed, step by step", () => {
    for (const one of [1, 2, 3]) {
      const [first, second] = [runHistory(one, { defects, traced: true }), runHistory(one, { defects, traced: true })];
      expect(second).toEqual(first);
    }
    expect(runHistory(seed, { defects, traced: true })).toEqual(runHistory(seed, { defects, traced: true }));
  });

  test("that breaks a rule is told by its shortest replay, which the words in its report repeat", () => {
    const whole = runHistory(seed, { defects });
    const { history, keep } = shortest(seed, { defects })!;
    expect(history.violation.rule).toBe(whole.violation!.rule);
    expect(history.steps).toBeLessThan(whole.steps);
    expect(keep.requests.length).toBeLessThanOrEqual(3);
    expect(keep.nodes.length).toBeLessThanOrEqual(2);
    expect(keep.faults.length + keep.messages.length).toBeLessThan(
      whole.kept.faults.length + whole.kept.messages.length,
    );
    const again = runHistory(seed, { defects, keep: keepOf(keepInWords(keep))!, traced: true });
    expect(again).toEqual(history);
  });
});
