/** Every number in a refusal's message is the ledger's, and following the message's advice helps. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { admissionRefusal } from "../../../src/core/admission/refusal.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import { type Money, moneyInWords, moneyWords, percentOf } from "../../../src/core/inference/money.ts";
import {
  type Admit,
  type ExtraReading,
  type Shortage,
  type WindowKind,
  windowKinds,
} from "../../../src/core/store/ledger.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { moment } from "../../../src/core/time/written.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
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

/** A ledger with one organization in the state of a case, and a clock that the test can move. */
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
  // A first request that needs nothing opens the session, so that the session's window is a current one.
  answerTo(admit({ inputNanos: 0, outputTokens: 0, outputTokens_min: 0, limits: noLimits }));
  // From here, no window resets after a whole number of seconds, so that the test notices a wait that is rounded down.
  clock.now_ms += 250;
  for (const { kind, total } of ledger.windows(organizationId)) {
    const { used, held } = kind === "extra" ? extra : totals[kind];
    Object.assign(total, { used, held });
  }
  const release = () => {
    for (const { total } of ledger.windows(organizationId)) total.held = 0;
  };
  return { clock, admit, answerTo, release };
}
const words = { plan: { ...noLimits, name: "pro" }, ...moneyWords("USD"), names: {} };
const leastOf = ({ inputNanos, outputTokens_min, price }: Case) =>
  inputNanos + Math.ceil((outputTokens_min * price) / 1000);
const leftOf = ({ limit, used }: Pick<Total, "limit" | "used">) => Math.max(0, (limit ?? Infinity) - used);
const money = (nanos: number) => moneyInWords(nanos, "USD");

/** The statements of a message, matched word by word; `rest` is the text that no pattern matched. */
function readIn({ message }: Fault) {
  let rest = message;
  const all = (pattern: RegExp) => {
    const found = [...rest.matchAll(pattern)];
    rest = rest.replaceAll(pattern, "");
    return found.map((match) => match.groups ?? {});
  };
  const span = "(?<span>for this session of five hours|for this week|for this month|of extra usage for this month)";
  const amount = "\\$\\d{1,3}(?:,\\d{3})*(?:\\.\\d+)?";
  const held = `(?:, of which running requests hold (?<held>${amount})|, (?<all>all) held by running requests)?`;
  const needs = all(new RegExp(`needs at least (?<amount>${amount})`, "g"));
  const used = all(new RegExp(`has used its (?<limit>${amount}) ${span}`, "g"));
  const left = all(
    new RegExp(
      `has (?<left>${amount}) left of its (?<limit>${amount}) ${span} \\((?<percent>[\\d.]+)% used\\)${held}`,
      "g",
    ),
  );
  const whole = all(new RegExp(`(?:the organization's whole|and its) (?<limit>${amount}) ${span}`, "g"));
  const resets = all(/(?<what>It|Its \w+(?: usage)?) starts anew on (?<at>\d{1,2} \w+ \d\d:\d\d \(UTC\))/g);
  return { needs, used, left, whole, resets, rest };
}

const kindOf: Record<string, WindowKind | "extra"> = {
  "for this session of five hours": "session",
  "for this week": "week",
  "for this month": "month",
  "of extra usage for this month": "extra",
};

/** Checks a property for the cases in which a request is refused in this way; fails if there are too few of them. */
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
      holds(one, answer as Shortage, admissionRefusal(answer, leastOf(one), words), ledger);
    }),
    { numRuns: 3000 },
  );
  expect(seen).toBeGreaterThan(100);
}

describe.each(["exhausted", "reserved"] as const)("a request of which the ledger says %s", (kind) => {
  test("is told what it needs, what is left and when it resets, and no number besides", () => {
    eachRefused(kind, (one, shortage, fault) => {
      const { needs, used, left, whole, resets, rest } = readIn(fault);
      const totalOf = (span: string): Total =>
        kindOf[span] === "extra"
          ? { limit: one.extra.capNanos, used: one.extra.used, held: one.extra.held }
          : one.totals[kindOf[span] as WindowKind];
      for (const { amount } of needs) expect(amount).toBe(money(leastOf(one)));
      for (const { span, limit } of used) {
        expect(leftOf(totalOf(span!))).toBe(0);
        expect(limit).toBe(money(totalOf(span!).limit!));
      }
      for (const said of left) {
        const total = totalOf(said.span!);
        expect(said.limit).toBe(money(total.limit!));
        expect(leftOf(total)).toBeGreaterThan(0);
        expect(said.left).toBe(moneyInWords(leftOf(total), "USD", "down"));
        expect(Number(said.percent)).toBe(percentOf(total.used, total.limit));
        const held = said.all ? leftOf(total) : total.held;
        expect(said.all !== undefined).toBe(total.held >= leftOf(total));
        if (!said.all) expect(said.held).toBe(held === 0 ? undefined : money(held));
      }
      for (const { span, limit } of whole) {
        expect(limit).toBe(money(totalOf(span!).limit!));
        expect(totalOf(span!).limit).toBeLessThan(leastOf(one));
      }
      for (const { at } of resets) {
        const { window } = fault.details.body as { window: WindowKind };
        expect(at).toBe(moment(shortage.windows[window].resetAt));
      }
      expect(used.length + left.length + whole.length).toBeGreaterThan(0);
      expect(rest).not.toMatch(/\d|undefined|null|Infinity/);
      expect(fault.message).toMatch(/^[A-Z].*\.$/);
    });
  });
});

const resetOf = ({ details }: Fault) => Date.parse(details.body!.reset_at as string);

describe("the advice", () => {
  test("to wait for a reset helps: by then the windows have room", () => {
    eachRefused("exhausted", (_, shortage, fault, { clock, admit, answerTo }) => {
      const [reset] = readIn(fault).resets;
      if (!reset) return;
      expect(fault.code).toBe("usage_limit_reached");
      expect(fault.details.body!.resets_at).toBe(Math.ceil(resetOf(fault) / 1000));
      expect(fault.details.retryAfterSeconds).toBe(Math.ceil((resetOf(fault) - shortage.at.getTime()) / 1000));
      clock.now_ms = resetOf(fault);
      expect(answerTo(admit()).answer).not.toBe("exhausted");
    });
  });

  test("to wait is not given where no reset helps", () => {
    eachRefused("exhausted", (one, shortage, fault, { clock, admit, answerTo, release }) => {
      if (readIn(fault).resets.length > 0) return;
      expect(fault.code).toBe("usage_limit_reached");
      const { limit, limit_value, needed } = fault.details.body as {
        limit: WindowKind;
        limit_value: Money;
        needed: Money;
      };
      expect([needed, limit_value]).toEqual([dollars(leastOf(one)), dollars(one.totals[limit].limit!)]);
      const others = windowKinds.map((kind) => one.totals[kind].limit ?? Infinity);
      expect(nanosOf(limit_value)).toBe(Math.min(...others));
      expect(nanosOf(limit_value)).toBeLessThan(nanosOf(needed));
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
