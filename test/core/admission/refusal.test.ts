/** What a refusal says is so: every number in it is the ledger's, and the advice helps. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { refusalOf } from "../../../src/core/admission/refusal.ts";
import { percentOf } from "../../../src/core/inference/amounts.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import {
  type Admit,
  type ExtraReading,
  type Shortage,
  type WindowKind,
  windowKinds,
} from "../../../src/core/store/ledger.ts";
import { noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { LedgerModel } from "../store/ledger-model.ts";
import { newRequestId } from "../store/ledger-stores.ts";
import { organizationId } from "./virtual-time.ts";

interface Total {
  limit: number | null;
  used: number;
  held: number;
}
interface Case {
  totals: Record<WindowKind, Total>;
  extra: ExtraReading;
  inputNanos: number;
  outputTokens_min: number;
  price: number;
}

/** Small and large amounts, so that windows are often just full, just not full, or below what a request needs. */
const amount = fc.oneof(fc.nat(20), fc.nat(5_000_000));
const totals = fc
  .record({ limit: fc.option(amount, { freq: 6 }), share: fc.nat(110), held: amount })
  .map(({ limit, share, held }): Total => {
    const whole = limit === null ? null : limit + 1;
    return { limit: whole, used: Math.floor(((whole ?? 1000) * share) / 100), held };
  });
const cases: fc.Arbitrary<Case> = fc.record({
  totals: fc.record({ session: totals, week: totals, month: totals }),
  extra: fc.record({ enabled: fc.boolean(), capNanos: fc.option(amount, { freq: 6 }), used: amount, held: amount }),
  inputNanos: amount,
  outputTokens_min: fc.nat(256),
  price: fc.nat(400_000),
});

/** An organization's ledger in the state of a case, and a clock to be moved. */
function ledgerIn({ totals, extra, ...asked }: Case) {
  const clock = { now_ms: Date.UTC(2026, 10, 21, 12) };
  const anchor = { at_ms: Date.UTC(2026, 0, 3), weekFrom_ms: -Infinity, monthFrom_ms: -Infinity };
  const ledger = new LedgerModel(new Map([[organizationId, { anchors: [anchor], extra }]]), () => clock.now_ms);
  const limits = { session: totals.session.limit, week: totals.week.limit, month: totals.month.limit };
  const facts = { organizationId, keyId: "key_1", operation: "chat.completions", model: "m", stream: false } as const;
  const admit = (change: Partial<Admit> = {}): Admit => ({
    verb: "admit",
    requestId: newRequestId(),
    ...facts,
    prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: asked.price },
    limits: { ...limits, concurrentRequests: null },
    inputNanos: asked.inputNanos,
    outputTokens: asked.outputTokens_min,
    outputTokens_min: asked.outputTokens_min,
    lease_ms: 60_000,
    ...change,
  });
  const answerTo = (one: Admit) => ledger.run([one])[0]!;
  // A first request of nothing opens the session, so that its window is one of now.
  answerTo(admit({ inputNanos: 0, outputTokens: 0, outputTokens_min: 0, limits: noLimits }));
  for (const { kind, total } of ledger.windows(organizationId)) {
    const { used, held } = kind === "extra" ? extra : totals[kind];
    Object.assign(total, { used, held });
  }
  const release = () => {
    for (const { total } of ledger.windows(organizationId)) total.held = 0;
  };
  return { clock, admit, answerTo, release };
}
const plan: Plan = { ...noLimits, name: "pro" };
const leastOf = ({ inputNanos, outputTokens_min, price }: Case) =>
  inputNanos + Math.ceil((outputTokens_min * price) / 1000);
const leftOf = ({ limit, used }: Pick<Total, "limit" | "used">) => Math.max(0, (limit ?? Infinity) - used);
const number = (written: string) => Number(written.replaceAll(",", ""));

/** What a message says, read word by word; what is left over when all of it was understood. */
function readIn({ message }: Fault) {
  let rest = message;
  const all = (pattern: RegExp) => {
    const found = [...rest.matchAll(pattern)];
    rest = rest.replaceAll(pattern, "");
    return found.map((match) => match.groups ?? {});
  };
  const name = "(?<name>five-hour session|weekly|monthly|extra usage)";
  const grouped = "\\d{1,3}(?:,\\d{3})*";
  const held = `(?:, of which running requests hold (?<held>${grouped})|, (?<all>all) held by running requests)?`;
  const needs = all(new RegExp(`needs at least (?<nanos>${grouped}) nanos?`, "g"));
  const left = all(
    new RegExp(
      `${name} limit of (?<limit>${grouped}) nanos? (?:has (?<left>${grouped}) left \\((?<percent>[\\d.]+)% used\\)${held}|is (?<over>used up))`,
      "g",
    ),
  );
  const whole = all(new RegExp(`the (?:organization's )?(?:whole )?${name} limit of (?<limit>${grouped}) nanos?`, "g"));
  const resets = all(new RegExp(`${name} limit resets at (?<at>\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z)`, "g"));
  return { needs, left, whole, resets, rest };
}

const kindOf: Record<string, WindowKind | "extra"> = {
  "five-hour session": "session",
  weekly: "week",
  monthly: "month",
  "extra usage": "extra",
};

/** Runs a property over the cases in which a request is refused so; fails where too few of them are. */
function eachRefused(
  kind: "exhausted" | "reserved",
  holds: (one: Case, shortage: Shortage, fault: Fault, ledger: ReturnType<typeof ledgerIn>) => void,
): void {
  let seen = 0;
  fc.assert(
    fc.property(cases, (one) => {
      const ledger = ledgerIn(one);
      const answer = ledger.answerTo(ledger.admit());
      if (answer.answer !== kind) return;
      seen += 1;
      holds(one, answer as Shortage, refusalOf(answer, leastOf(one), plan), ledger);
    }),
    { numRuns: 3000 },
  );
  expect(seen).toBeGreaterThan(100);
}

describe.each(["exhausted", "reserved"] as const)("a request of which the ledger says %s", (kind) => {
  test("is told what it needs, what is left and when it resets, and no number besides", () => {
    eachRefused(kind, (one, shortage, fault) => {
      const { needs, left, whole, resets, rest } = readIn(fault);
      const totalOf = (name: string): Total =>
        kindOf[name] === "extra"
          ? { limit: one.extra.capNanos, used: one.extra.used, held: one.extra.held }
          : one.totals[kindOf[name] as WindowKind];
      for (const { nanos } of needs) expect(number(nanos!)).toBe(leastOf(one));
      for (const said of left) {
        const total = totalOf(said.name!);
        expect(number(said.limit!)).toBe(total.limit!);
        expect(said.over !== undefined).toBe(leftOf(total) === 0);
        if (said.over) continue;
        expect(number(said.left!)).toBe(leftOf(total));
        expect(Number(said.percent)).toBe(percentOf(total.used, total.limit));
        const held = Math.min(total.held, leftOf(total));
        const heldSaid = said.all ? leftOf(total) : number(said.held ?? "0");
        expect(heldSaid).toBe(held);
      }
      for (const { name, limit } of whole) {
        expect(totalOf(name!).limit).toBe(number(limit!));
        expect(number(limit!)).toBeLessThan(leastOf(one));
      }
      for (const { name, at } of resets) {
        const window = kindOf[name!] === "extra" ? "month" : (kindOf[name!] as WindowKind);
        expect(at).toBe(shortage.windows[window].resetAt.toISOString());
      }
      expect(left.length + whole.length).toBeGreaterThan(0);
      expect(rest).not.toMatch(/\d|undefined|null|Infinity/);
      // One unit, two nanos; a sentence begins with a capital and ends with a full stop.
      expect(fault.message).not.toMatch(/(?<![\d,])1 nanos|(?:[\d,]\d|[02-9]) unit\b/);
      expect(fault.message).toMatch(/^[A-Z].*\.$/);
    });
  });
});

describe("the advice", () => {
  test("to wait for a reset helps: by then the windows have room", () => {
    eachRefused("exhausted", (_, shortage, fault, { clock, admit, answerTo }) => {
      const [reset] = readIn(fault).resets;
      if (!reset) return;
      expect(fault.code).toBe("usage_limit_reached");
      expect(fault.details.body).toMatchObject({
        reset_at: reset.at,
        resets_at: Math.ceil(Date.parse(reset.at!) / 1000),
      });
      expect(fault.details.retryAfterSeconds).toBe(Math.ceil((Date.parse(reset.at!) - shortage.at.getTime()) / 1000));
      clock.now_ms = Date.parse(reset.at!);
      expect(answerTo(admit()).answer).not.toBe("exhausted");
    });
  });

  test("to wait is not given where no reset helps", () => {
    eachRefused("exhausted", (one, shortage, fault, { clock, admit, answerTo, release }) => {
      if (readIn(fault).resets.length > 0) return;
      expect(fault.code).toBe("usage_limit_reached");
      const { limit, limit_value, needed } = fault.details.body as {
        limit: WindowKind;
        limit_value: number;
        needed: number;
      };
      expect([needed, limit_value]).toEqual([leastOf(one), one.totals[limit].limit!]);
      const others = windowKinds.map((kind) => one.totals[kind].limit ?? Infinity);
      expect(limit_value).toBe(Math.min(...others));
      expect(limit_value).toBeLessThan(needed);
      expect(fault.details).not.toHaveProperty("retryAfterSeconds");
      expect(fault.details.headers).toEqual({ "x-should-retry": "false" });
      expect(JSON.stringify(fault.details.body)).not.toMatch(/reset|"window"/);
      release();
      for (const kind of windowKinds) {
        clock.now_ms = shortage.windows[kind].resetAt.getTime();
        expect(answerTo(admit()).answer).toBe("exhausted");
      }
    });
  });

  test("to send less is given where it helps now, and to whom nothing else helps ever", () => {
    eachRefused("exhausted", (_, _shortage, fault, { admit, answerTo }) => {
      const { answer } = answerTo(admit({ inputNanos: 1, outputTokens: 0, outputTokens_min: 0 }));
      const isTooLargeEver = fault.details.body?.limit !== undefined;
      expect(fault.message.includes("end less input")).toBe(isTooLargeEver || answer !== "exhausted");
    });
  });

  test("to try again helps: when nothing runs any more, the request is admitted", () => {
    eachRefused("reserved", (_, _shortage, fault, { admit, answerTo, release }) => {
      expect(fault).toMatchObject({ code: "usage_reserved", details: { retryAfterSeconds: 1 } });
      expect(fault.message).toContain("Try again");
      release();
      expect(answerTo(admit()).answer).toBe("granted");
    });
  });

  test("to ask for extra usage is given to those who have none", () => {
    eachRefused("exhausted", (one, _shortage, fault) => {
      expect(fault.message.includes("or for extra usage")).toBe(!one.extra.enabled);
    });
  });
});
