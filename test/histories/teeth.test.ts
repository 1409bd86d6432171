// Histories (simulated runs) notice missing rules: with any of the nine rules of the protocol removed, a history ends
// in a violation.

import { describe, expect, test } from "bun:test";
import { some } from "../harness/depth.ts";
import { changeKinds } from "./changes.ts";
import { runHistory } from "./history.ts";
import { mutations } from "./mutations.ts";
import { allMutations } from "./mutations-of-changes.ts";
import { keepInWords, keepOf, shortest } from "./shrink.ts";
import { caught } from "./teeth.ts";

const histories_max = 10_000;

describe("a rule that is taken out is missed", () => {
  test("all nine are", () => {
    const taken = new Set(Object.values(mutations).map(({ rule }) => rule));
    expect([...taken].filter((rule) => typeof rule === "number")).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("and under all that may befall requests while they run", () => {
    const under = new Set(Object.values(allMutations).flatMap(({ under }) => under ?? []));
    expect([...under]).toEqual(expect.arrayContaining([...changeKinds]));
  });

  for (const [name, { rule, seenAs, under }] of some(10, Object.entries(allMutations))) {
    test(`rule ${rule}: ${name}`, () => {
      const found = caught(name, histories_max);
      expect(found).not.toBeNull();
      expect(seenAs).toContain(found!.violation.rule);
      // Without the defect, the same history has no violation: the violation comes from the missing rule, and from no
      // other fault.
      expect(runHistory(found!.histories, { only: under }).violation).toBeNull();
    }, 300_000);
  }
});

describe("a history", () => {
  const name = "a settlement that comes twice is booked twice";
  const { defects } = mutations[name]!;

  test("is replayed by its seed, step by step", () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      for (const options of [{ traced: true }, { defects, traced: true }])
        expect(runHistory(seed, options)).toEqual(runHistory(seed, options));
    }
  });

  test("that breaks a rule is told by its shortest replay, which the words in its report repeat", () => {
    const { histories: seed, violation } = caught(name, histories_max)!;
    const { history, keep } = shortest(seed, { defects })!;
    expect(history.violation.rule).toBe(violation.rule);
    expect(history.steps).toBeLessThan(runHistory(seed, { defects }).steps);
    // The shortest replay has one node, one request, and one message that was lost or doubled, or one fault.
    expect([keep.nodes.length, keep.requests.length, keep.faults.length + keep.messages.length]).toEqual([1, 1, 1]);
    expect(runHistory(seed, { defects, keep: keepOf(keepInWords(keep))!, traced: true })).toEqual(history);
  });
});
