/**
 * The limit that a refusal names: of the limits that leave too little, the one that resets last; of those that reset at
 * the same time, the narrowest.
 */
import { expect, test } from "bun:test";
import { Ample } from "../../../src/core/admission/allowance.ts";
import { limiterOf, stoppingLimit, tightestLimit } from "../../../src/core/admission/limited-by.ts";
import { admissionRefusal } from "../../../src/core/admission/refusal.ts";
import { moneyOf, moneyWords } from "../../../src/core/inference/money.ts";
import type {
  AdmitAnswer,
  ExtraReading,
  FullLimit,
  Granted,
  SubjectReading,
  WindowKind,
  WindowReadings,
} from "../../../src/core/store/ledger.ts";
import { noLimits } from "../../../src/core/store/plan.ts";

const at = new Date("2026-11-21T12:00:00Z");
const resets: Record<WindowKind, Date> = {
  session: new Date("2026-11-21T15:00:00Z"),
  week: new Date("2026-11-25T00:00:00Z"),
  month: new Date("2026-12-19T00:00:00Z"),
};
type Totals = Partial<Record<WindowKind, [limit: number, used: number, held: number]>>;
function windows(totals: Totals): WindowReadings {
  const reading = (kind: WindowKind) => {
    const [limit, used, held] = totals[kind] ?? [null, 0, 0];
    return { kind, limit, used, held, startsAt: at, resetAt: resets[kind] };
  };
  return { session: reading("session"), week: reading("week"), month: reading("month") };
}
const own = (
  subject: SubjectReading["subject"],
  totals: Totals,
  running = 0,
  concurrentRequests: number | null = null,
) => ({ subject, windows: windows(totals), running, concurrentRequests }) satisfies SubjectReading;
const forModels = (models: string, one: SubjectReading): SubjectReading => ({ ...one, models });
const noExtra: ExtraReading = { enabled: false, capNanos: null, used: 0, held: 0 };
function short(
  answer: "exhausted" | "reserved",
  kinds: WindowKind[],
  organization: Totals,
  subjects: SubjectReading[],
  extra = noExtra,
) {
  return { answer, kinds, windows: windows(organization), subjects, extra, at } satisfies AdmitAnswer;
}

test("of several that lack room it is the one whose window resets last; of equals the narrowest", () => {
  const full: Totals = { session: [100, 100, 0] };
  const [key, team] = [own("key", full), own("team", full)];
  const named = (...parts: Parameters<typeof short>) => limiterOf(short(...parts), 10).limitedBy;
  expect(named("exhausted", ["session"], full, [key, team])).toBe("key");
  expect(named("exhausted", ["session"], full, [own("key", {}), team])).toBe("team");
  expect(named("exhausted", ["session"], full, [own("key", {})])).toBe("organization");
  expect(named("exhausted", ["week"], { week: [100, 100, 0] }, [key, team])).toBe("organization");
  expect(named("exhausted", [], {}, [own("key", full), own("team", { month: [9, 0, 0] })])).toBe("team");
});

test("a limit for models is named with them, and of equals a model comes before its prefix, and that before all models", () => {
  const full: Totals = { session: [100, 100, 0] };
  const named = (...subjects: SubjectReading[]) => {
    const { limitedBy, models } = limiterOf(short("exhausted", ["session"], full, subjects), 10);
    return [limitedBy, models];
  };
  const prefix = forModels("acme/*", own("key", full));
  expect(named(own("key", full), prefix)).toEqual(["key", "acme/*"]);
  expect(named(prefix, forModels("acme/large", own("key", full)))).toEqual(["key", "acme/large"]);
  expect(named(forModels("acme/large", own("team", full)), own("key", full))).toEqual(["key", undefined]);
  expect(named(forModels("acme/*", own("organization", full)))).toEqual(["organization", "acme/*"]);
  const later = forModels("acme/*", own("organization", { week: [100, 100, 0] }));
  expect(named(own("key", full), later)).toEqual(["organization", "acme/*"]);
});

test("a refusal by a limit for models says so, in words and by its field, and that another model may do", () => {
  const limit = forModels("acme/*", own("organization", { week: [100, 100, 0] }));
  const extra = { enabled: true, capNanos: 1_000, used: 0, held: 0 };
  const { message, details } = admissionRefusal(short("exhausted", [], {}, [limit], extra), 10, words);
  expect(message).toStartWith("The organization has used its $0.0000001 for acme/* for this week. It starts anew on ");
  expect(message).toContain("Choose another model, wait until then, or ");
  expect(message).toEndWith("or ask your administrator for a higher limit of the organization for acme/*.");
  expect(details.body).toMatchObject({
    ...{ limited_by: "organization", limited_models: "acme/*", window: "week" },
    extra_usage: { enabled: false, available: moneyOf(0, "USD") },
  });
  const small = forModels("acme/large", own("team", { month: [9, 0, 0] }));
  const whole = admissionRefusal(short("exhausted", [], {}, [small]), 10, words);
  expect(whole.message).toContain("more than the team's whole $0.000000009 for acme/large for this month.");
  expect(whole.details.body).toMatchObject({ limit: "month", limited_by: "team", limited_models: "acme/large" });
  const reserved = admissionRefusal(
    short("reserved", [], {}, [forModels("acme/*", own("key", { week: [100, 0, 95] }))]),
    10,
    words,
  );
  expect(reserved.details.body).toEqual({ limited_by: "key", limited_models: "acme/*" });
  const crowded = { answer: "concurrency", windows: windows({}), at } as const;
  const many = admissionRefusal({ ...crowded, subjects: [forModels("acme/*", own("key", {}, 2, 2))] }, 10, words);
  expect(many.message).toBe(
    "The key laptop's limit of 2 requests at a time for acme/* is reached. Try again when one of them ends.",
  );
  expect(many.details.body).toEqual({ limited_by: "key", limited_models: "acme/*" });
});

test("an organization whose extra usage has room is not what is full", () => {
  const full: Totals = { month: [100, 100, 0] };
  const extra = { enabled: true, capNanos: 1_000, used: 0, held: 0 };
  const shortage = short("exhausted", ["month"], full, [own("key", { session: [100, 95, 0] })], extra);
  expect(limiterOf(shortage, 10)).toMatchObject({ limitedBy: "key", kinds: ["session"] });
});

const words = {
  plan: { ...noLimits, name: "pro", concurrentRequests: 8 },
  ...moneyWords("USD"),
  names: { key: "laptop" },
};

test("what only others hold for the moment is no settled use", () => {
  const held = own("key", { week: [100, 50, 45] });
  expect(limiterOf(short("reserved", [], {}, [held]), 10)).toMatchObject({ limitedBy: "key", kinds: ["week"] });
  const fault = admissionRefusal(short("reserved", [], {}, [held]), 10, words);
  expect(fault).toMatchObject({
    code: "usage_reserved",
    message:
      "This request needs at least $0.00000001, but the key laptop has $0.00000005 left of its $0.0000001 for this week (50% used), of which running requests hold $0.000000045. Try again when one of them ends.",
    details: { retryAfterSeconds: 1, body: { limited_by: "key" } },
  });
});

test("a refusal names the owner's window, reset and number, beside the organization's headers", () => {
  const team = own("team", { week: [10_000, 9_995, 0] });
  const fault = admissionRefusal(short("exhausted", [], { week: [20_000, 5_000, 0] }, [team]), 10, words);
  expect(fault).toMatchObject({
    code: "usage_limit_reached",
    message:
      "This request needs at least $0.00000001, but the team has $0.000000005 left of its $0.00001 for this week (99.95% used). It starts anew on 25 November 00:00 (UTC). Send less input, choose a cheaper model, wait until then, or ask your administrator for a higher limit of the team.",
    details: {
      headers: { "x-service-usage-week-percent": "25", "x-should-retry": "false" },
      body: {
        limited_by: "team",
        window: "week",
        resets_in_seconds: 302_400,
        extra_usage: { enabled: false, available: { amount: "0.000000000", currency: "USD" } },
      },
    },
  });
});

test("of requests at a time, too, the narrowest that is full is named", () => {
  const answer = { answer: "concurrency", windows: windows({}), at } as const;
  const limitedBy = (...subjects: SubjectReading[]) =>
    admissionRefusal({ ...answer, subjects }, 10, words).details.body?.limited_by;
  expect(limitedBy(own("key", {}, 2, 2), own("team", {}, 4, 4))).toBe("key");
  expect(limitedBy(own("key", {}, 1, 2), own("team", {}, 4, 4))).toBe("team");
  expect(limitedBy(own("key", {}, 1, 2))).toBe("organization");
});

test("the hint of ample room looks at the key's own limits, and a key's refusal takes nothing from its neighbours", () => {
  let now_ms = 0;
  const ample = new Ample(() => now_ms);
  const grant = (keyId: string, subjects?: SubjectReading[]) =>
    ample.granted({ organizationId: "org_1", keyId, model: "large" }, { windows: windows({}), subjects });
  const isAmple = (keyId: string, nanos: number) =>
    ample.isAmple({ organizationId: "org_1", keyId, model: "large", plan: noLimits, nanos, running: 0 });
  grant("key_2");
  expect(isAmple("key_1", 10)).toBe(true);
  grant("key_1", [own("key", { week: [1_000, 500, 299] })]);
  expect([isAmple("key_1", 10), isAmple("key_1", 11)]).toEqual([true, false]);
  grant("key_1", [own("key", {}, 1, 4)]);
  expect(isAmple("key_1", 10)).toBe(false);
  ample.keyRefused("key_1", "small");
  ample.granted({ organizationId: "org_1", keyId: "key_1", model: "large" }, { windows: windows({}) });
  expect(isAmple("key_1", 10)).toBe(true);
  ample.keyRefused("key_1", "large");
  expect([isAmple("key_1", 1), isAmple("key_2", 1)]).toEqual([false, true]);
  grant("key_1", [forModels("large", own("key", { week: [1_000, 500, 299] })), own("key", {})]);
  expect([isAmple("key_1", 10), isAmple("key_1", 11)]).toEqual([true, false]);
  ample.keyRefused("key_1");
  expect([isAmple("key_1", 1), isAmple("key_2", 1)]).toEqual([false, true]);
  grant("key_1");
  expect(isAmple("key_1", 10)).toBe(true);
  grant("key_1", [own("key", {})]);
  now_ms = 5_001;
  grant("key_2");
  expect([isAmple("key_1", 10), isAmple("key_2", 10)]).toEqual([false, true]);
});

test("a running answer is stopped by the limit that resets last, between equals by the narrowest", () => {
  const full = (limitedBy: FullLimit["limitedBy"], window: WindowKind, models?: string): FullLimit => ({
    ...{ limitedBy, window, resetAt: resets[window] },
    ...(models !== undefined && { models }),
  });
  const [ofTeam, ofKey] = [full("team", "month"), full("key", "session")];
  expect(stoppingLimit([ofKey, ofTeam])).toEqual({ limitedBy: "team", window: "month" });
  const equals = [full("organization", "week"), full("person", "week"), full("person", "week", "acme/*")];
  expect(stoppingLimit(equals)).toEqual({ limitedBy: "person", window: "week", models: "acme/*" });
  // Without a full limit, the reason is that the extra usage which paid for the answer was turned off.
  expect(stoppingLimit([])).toEqual({ limitedBy: "organization", window: "extra" });
});

test("before any growth was refused it is the limit that left the grant the least room", () => {
  const granted = (organization: Totals, subjects: SubjectReading[], source: Granted["source"] = "plan"): Granted => ({
    ...{ nanos: 10, outputTokens: 1, source, windows: windows(organization), subjects, at },
  });
  const [key, person] = [own("key", { week: [100, 40, 20] }), own("person", { month: [90, 50, 0] })];
  expect(tightestLimit(granted({ session: [99, 0, 0] }, [person, key]))).toEqual({ limitedBy: "key", window: "week" });
  expect(tightestLimit(granted({ session: [39, 0, 0] }, [key]))).toEqual({
    limitedBy: "organization",
    window: "session",
  });
  expect(tightestLimit(granted({ session: [5, 5, 0] }, [key], "extra"))).toEqual({ limitedBy: "key", window: "week" });
  expect(tightestLimit(granted({ session: [5, 5, 0] }, [], "extra"))).toMatchObject({ window: "extra" });
});
