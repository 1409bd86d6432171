/**
 * The receipts that a node keeps in memory are the last ones that it was given, even if some were removed in between.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { RecentReceipts } from "../../../src/features/upkeep/recent-receipts.ts";
import type { Confirmed } from "../../../src/features/upkeep/store/lost.ts";

const hex = (number: number) => number.toString(16).padStart(32, "0");
const confirmed = (number: number): Confirmed => ({
  requestId: `req_${hex(number)}`,
  organizationId: `org_${hex(number % 3)}`,
  charged: number % 5 === 0 ? Number.MAX_SAFE_INTEGER : number,
});

const act = fc.oneof(
  { weight: 5, arbitrary: fc.record({ adds: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ forgets: fc.array(fc.nat(200), { maxLength: 8 }) }) },
);

test("what is kept is the last of what was added, less what was forgotten, in its order", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(act, { maxLength: 30 }), fc.nat(15), (max, acts, asked) => {
      const kept = new RecentReceipts(max);
      let model: Confirmed[] = [];
      let added = 0;
      for (const one of acts) {
        if ("adds" in one) {
          for (let count = 0; count < one.adds; count++) {
            kept.add(confirmed(added));
            model = [...model, confirmed(added)].slice(-max);
            added += 1;
          }
        } else {
          const gone = new Set(one.forgets.map((number) => confirmed(number).requestId));
          kept.forget(gone);
          model = model.filter(({ requestId }) => !gone.has(requestId));
        }
        expect(kept.latest()).toHaveLength(model.length);
      }
      expect(kept.latest()).toEqual(model);
      expect(kept.latest(asked)).toEqual(asked === 0 ? [] : model.slice(-asked));
    }),
  );
});

test("an id of another shape is refused, and nothing is written over", () => {
  const kept = new RecentReceipts(2);
  kept.add(confirmed(1));
  expect(() => kept.add({ ...confirmed(2), requestId: "req_short" })).toThrow(TypeError);
  expect(() => kept.add({ ...confirmed(2), organizationId: "other" })).toThrow(TypeError);
  expect(kept.latest()).toEqual([confirmed(1)]);
});
