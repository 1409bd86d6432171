// The model of windows against a reference that steps from boundary to boundary and never divides.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Anchor, monthAt, monthOf, session_ms, sessionAt, weekAt, weekOf, withAnchor } from "./windows-model.ts";

const day_ms = 86_400_000;
const from_ms = Date.UTC(2019, 0, 1);
const to_ms = Date.UTC(2032, 11, 31);

/** Calendar days that are easily got wrong, at any time of day, and instants anywhere. */
const instants = fc.oneof(
  fc.integer({ min: from_ms, max: to_ms }),
  fc
    .record({
      year: fc.integer({ min: 2019, max: 2032 }),
      month: fc.integer({ min: 0, max: 11 }),
      day: fc.constantFrom(1, 28, 29, 30, 31),
      time_ms: fc.constantFrom(0, 1, day_ms / 2, day_ms - 1),
    })
    .map(({ year, month, day, time_ms }) => Date.UTC(year, month, Math.min(day, daysOf(year, month))) + time_ms),
);

function daysOf(year: number, month: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]!;
}

/** Start of the n-th month after the anchor, by counting months one at a time. */
function monthStart(anchor_ms: number, months: number): number {
  const anchor = new Date(anchor_ms);
  let year = anchor.getUTCFullYear();
  let month = anchor.getUTCMonth();
  for (let step = 0; step < Math.abs(months); step++) {
    month += Math.sign(months);
    if (month === 12) [year, month] = [year + 1, 0];
    if (month === -1) [year, month] = [year - 1, 11];
  }
  const time_ms = ((anchor_ms % day_ms) + day_ms) % day_ms;
  return Date.UTC(year, month, Math.min(anchor.getUTCDate(), daysOf(year, month))) + time_ms;
}

function referenceMonth(anchor_ms: number, instant_ms: number) {
  let months = 0;
  while (monthStart(anchor_ms, months) > instant_ms) months--;
  while (monthStart(anchor_ms, months + 1) <= instant_ms) months++;
  return { startsAt_ms: monthStart(anchor_ms, months), endsAt_ms: monthStart(anchor_ms, months + 1) };
}

function referenceWeek(anchor_ms: number, instant_ms: number) {
  let startsAt_ms = anchor_ms;
  while (startsAt_ms > instant_ms) startsAt_ms -= 7 * day_ms;
  while (startsAt_ms + 7 * day_ms <= instant_ms) startsAt_ms += 7 * day_ms;
  return { startsAt_ms, endsAt_ms: startsAt_ms + 7 * day_ms };
}

describe("weeks and months", () => {
  test("are those of the reference, for any anchor and instant", () => {
    fc.assert(
      fc.property(instants, instants, (anchor_ms, instant_ms) => {
        expect(monthOf(anchor_ms, instant_ms)).toEqual(referenceMonth(anchor_ms, instant_ms));
        expect(weekOf(anchor_ms, instant_ms)).toEqual(referenceWeek(anchor_ms, instant_ms));
      }),
      { numRuns: 3000 },
    );
  });

  test("are half-open: a millisecond or a microsecond before the end is inside, the end is not", () => {
    fc.assert(
      fc.property(instants, instants, fc.constantFrom(1, 0.001), (anchor_ms, instant_ms, little_ms) => {
        for (const windowOf of [weekOf, monthOf]) {
          const window = windowOf(anchor_ms, instant_ms);
          expect(windowOf(anchor_ms, window.startsAt_ms)).toEqual(window);
          expect(windowOf(anchor_ms, window.startsAt_ms + little_ms)).toEqual(window);
          expect(windowOf(anchor_ms, window.endsAt_ms - little_ms)).toEqual(window);
          expect(windowOf(anchor_ms, window.endsAt_ms).startsAt_ms).toBe(window.endsAt_ms);
          expect(windowOf(anchor_ms, window.startsAt_ms - little_ms).endsAt_ms).toBe(window.startsAt_ms);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("neither overlap nor leave a gap over any row of new anchors, and no open window's end ever moves", () => {
    const changes = fc.array(fc.record({ after_ms: fc.integer({ min: 0, max: 90 * day_ms }), anchor_ms: instants }), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(instants, changes, (first_ms, rows) => {
        let anchors: Anchor[] = [
          { at_ms: first_ms, weekFrom_ms: Number.NEGATIVE_INFINITY, monthFrom_ms: Number.NEGATIVE_INFINITY },
        ];
        let now_ms = first_ms + 1;
        for (const { after_ms, anchor_ms } of rows) {
          now_ms += after_ms;
          const open = [weekAt(anchors, now_ms), monthAt(anchors, now_ms)];
          anchors = withAnchor(anchors, anchor_ms, now_ms);
          expect([weekAt(anchors, now_ms), monthAt(anchors, now_ms)]).toEqual(open);
        }
        for (const windowAt of [weekAt, monthAt]) {
          let window = windowAt(anchors, first_ms);
          for (let step = 0; step < 80 && window.startsAt_ms < now_ms + 90 * day_ms; step++) {
            expect(windowAt(anchors, window.endsAt_ms - 1)).toEqual(window);
            const next = windowAt(anchors, window.endsAt_ms);
            expect(next.startsAt_ms).toBe(window.endsAt_ms);
            expect(next.endsAt_ms).toBeGreaterThan(next.startsAt_ms);
            window = next;
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});

test("a session lasts five hours from its opening to the microsecond; none is open before the first", () => {
  const opened_ms = Date.UTC(2026, 1, 28, 23);
  expect(sessionAt(null, opened_ms)).toBeNull();
  const session = { startsAt_ms: opened_ms, endsAt_ms: opened_ms + session_ms };
  expect(sessionAt(opened_ms, opened_ms)).toEqual(session);
  expect(sessionAt(opened_ms, opened_ms + session_ms - 0.001)).toEqual(session);
  expect(sessionAt(opened_ms, opened_ms + session_ms)).toBeNull();
});
