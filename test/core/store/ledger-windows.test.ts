// Usage windows in SQL equal those of the reference model in TypeScript (windows-model.ts) at thousands of instants.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { databaseKinds, seed } from "../../harness/depth.ts";
import { ledgerForTests } from "./ledger-stores.ts";
import { monthOf, weekOf } from "./windows-model.ts";

const day_ms = 86_400_000;
/**
 * Milliseconds from 2015 to 2040. In microseconds they are still exact integers in JavaScript and in Postgres, as the
 * comparison requires.
 */
const milliseconds = fc.integer({ min: Date.UTC(2015, 0, 1), max: Date.UTC(2040, 0, 1) });

function pairs(): { anchor_ms: number; instant_us: bigint }[] {
  const anywhere = fc.record({
    anchor_ms: milliseconds,
    instant_us: milliseconds.map((at_ms) => BigInt(at_ms) * 1000n),
  });
  const monthEnds = fc
    .record({
      year: fc.integer({ min: 2015, max: 2040 }),
      month: fc.integer({ min: 0, max: 11 }),
      time_ms: fc.constantFrom(0, 1, day_ms - 1),
    })
    .map(({ year, month, time_ms }) => Date.UTC(year, month + 1, 0) + time_ms);
  const boundaries = fc
    .record({
      anchor_ms: monthEnds,
      near_ms: milliseconds,
      step_us: fc.constantFrom(-1000n, -1n, 0n, 1n, 1000n),
      week: fc.boolean(),
    })
    .map(({ anchor_ms, near_ms, step_us, week }) => {
      const { startsAt_ms } = week ? weekOf(anchor_ms, near_ms) : monthOf(anchor_ms, near_ms);
      return { anchor_ms, instant_us: BigInt(startsAt_ms) * 1000n + step_us };
    });
  return fc.sample(fc.oneof(anywhere, boundaries), { numRuns: 5000, seed });
}

describe.each(databaseKinds(import.meta.path))("windows on %s", (name) => {
  const { store } = ledgerForTests(name, { isBalanced: false });
  test("weeks and months are the same in SQL, in any time zone of the session", async () => {
    const asked = pairs();
    const rows = await store.db.transaction(async (tx) => {
      await tx.exec("set local timezone = 'America/New_York'");
      return tx.query<Record<"week_from" | "week_to" | "month_from" | "month_to", number>>(
        `select (extract(epoch from w.starts_at) * 1000)::float8 as week_from, (extract(epoch from w.ends_at) * 1000)::float8 as week_to,
           (extract(epoch from m.starts_at) * 1000)::float8 as month_from, (extract(epoch from m.ends_at) * 1000)::float8 as month_to
         from unnest($1::bigint[], $2::bigint[]) with ordinality as i (anchor_us, at_us, position)
         cross join lateral (select 'epoch'::timestamptz + anchor_us * interval '1 microsecond' as anchor_at,
           'epoch'::timestamptz + at_us * interval '1 microsecond' as at) t
         cross join lateral usage_week(t.anchor_at, t.at) w cross join lateral usage_month(t.anchor_at, t.at) m
         order by position`,
        [
          `{${asked.map((one) => one.anchor_ms * 1000).join(",")}}`,
          `{${asked.map((one) => one.instant_us).join(",")}}`,
        ],
      );
    });
    expect(rows).toHaveLength(asked.length);
    for (const [index, { anchor_ms, instant_us }] of asked.entries()) {
      const instant_ms = Number(instant_us / 1000n) + Number(instant_us % 1000n) / 1000;
      const week = weekOf(anchor_ms, instant_ms);
      const month = monthOf(anchor_ms, instant_ms);
      const shown = `anchor ${new Date(anchor_ms).toISOString()}, instant ${instant_us} µs: `;
      expect(shown + JSON.stringify(rows[index])).toBe(
        shown +
          JSON.stringify({
            week_from: week.startsAt_ms,
            week_to: week.endsAt_ms,
            month_from: month.startsAt_ms,
            month_to: month.endsAt_ms,
          }),
      );
    }
  }, 30_000);
});
