/**
 * Tests of limits.ts: it objects to a charge beyond the limit of a key or a team, and to no charge within the limit.
 */
import { expect, test } from "bun:test";
import type { Row } from "./ledger-book.ts";
import { type Charge, type LimitChange, pastSubjectLimits, type RaiseSet } from "./limits.ts";

const subject = "019ab000-0000-7000-8000-000000000001";
const charge = (began_ms: number, charged: number): Charge => ({
  entry: { marker: `m${began_ms}`, requestId: "req", began_ms, ended_ms: began_ms + 1_000 } as Charge["entry"],
  row: { charged, session_used_after: 1, session_starts_at: "one", subjects: [subject] } as Row,
});
const change = (at_ms: number, session: number | null, isConfirmed = true): LimitChange => ({
  subject,
  at_ms,
  session,
  isConfirmed,
});
const broken = (charges: Charge[], changes: LimitChange[], raises: RaiseSet[] = []) =>
  pastSubjectLimits(charges, changes, raises, []).length;

test("what fits under the limit is not objected to, and one unit more is", () => {
  const lowered = [change(0, 100)];
  expect(broken([charge(20_000, 60), charge(40_000, 40)], lowered)).toBe(0);
  expect(broken([charge(20_000, 60), charge(40_000, 41)], lowered)).toBe(1);
  expect(broken([charge(20_000, 101)], lowered)).toBe(1);
});

test("a limit that was raised or taken away counts for what ran then", () => {
  expect(broken([charge(20_000, 101)], [change(0, 100), change(15_000, 200)])).toBe(0);
  expect(broken([charge(20_000, 201)], [change(0, 100), change(15_000, 200)])).toBe(1);
  expect(broken([charge(20_000, 201)], [change(0, 100), change(15_000, null)])).toBe(0);
});

test("a change that was never confirmed may count or not", () => {
  expect(broken([charge(40_000, 150)], [change(0, 200), change(10_000, 100, false)])).toBe(0);
  expect(broken([charge(40_000, 150)], [change(0, 200), change(10_000, 100)])).toBe(1);
});

test("a change that a failover may have lost may count or not, and all others count", () => {
  const spans = [{ from_ms: 100_000, to_ms: 101_000 }];
  const objections = (charges: Charge[], changes: LimitChange[]) =>
    pastSubjectLimits(charges, changes, [], spans).length;
  const lowered = [change(0, 200), change(100_500, 100)];
  expect(objections([charge(200_000, 150)], lowered)).toBe(0);
  expect(objections([charge(200_000, 201)], lowered)).toBe(1);
  expect(objections([charge(200_000, 150)], [change(0, 200), change(50_000, 100)])).toBe(1);
  expect(objections([charge(20_000, 201)], lowered)).toBe(1);
});

test("a raise counts for what ran before its end, for its subject alone, and never lowers", () => {
  const raise = (session: number, whose = subject): RaiseSet => ({
    subject: whose,
    from_ms: 15_000,
    until_ms: 30_000,
    session,
  });
  const limited = [change(0, 100)];
  expect(broken([charge(20_000, 150)], limited, [raise(150)])).toBe(0);
  expect(broken([charge(20_000, 151)], limited, [raise(150)])).toBe(1);
  expect(broken([charge(20_000, 100)], limited, [raise(50)])).toBe(0);
  expect(broken([charge(60_000, 101)], limited, [raise(150)])).toBe(1);
  expect(broken([charge(20_000, 101)], limited, [raise(150, "another")])).toBe(1);
});
