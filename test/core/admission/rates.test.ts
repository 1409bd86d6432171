// Sliding rates at admission: a request is counted before the ledger is asked, the count is given back if the ledger
// refuses, and it is corrected once at the end.

import { beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import type { Batcher } from "../../../src/core/admission/batcher.ts";
import { type Entry, entrance } from "../../../src/core/admission/entrance.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Command } from "../../../src/core/store/ledger.ts";
import { noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { not_limited, type RateSubject, type Rates } from "../../../src/core/store/rates.ts";
import { memoryRates } from "../../../src/stores/memory/rates.ts";
import { laterFaultOf } from "../../harness/faults.ts";
import { organizationId } from "./virtual-time.ts";

let rates: Rates;
let settlements: number;
let refuses: Fault | null;
beforeEach(() => {
  rates = memoryRates(() => 0);
  settlements = 0;
  refuses = null;
});

const empty = { limit: null, used: 0, held: 0 };
const granted = { answer: "granted", nanos: 500, outputTokens: 400, source: "plan", at: new Date(0) };
const batcher = {
  async submit({ verb }: Command) {
    if (verb === "admit" && refuses) throw refuses;
    if (verb === "settle") settlements += 1;
    return { ...granted, windows: { session: empty, week: empty, month: empty } };
  },
} as unknown as Batcher;
const rated = (rates: Rates) =>
  entrance(
    { batcher, clock: { now_ms: () => 0, after: () => () => {} }, rates },
    { lease_ms: 60_000, checkpoint_ms: 10_000, grant_ms: () => 1_000, currency: "USD" },
  );

/** A request with 100 tokens of input and at most 400 of output. */
function entry(limits: Partial<Plan>): Entry {
  return {
    requestId: `req_${crypto.randomUUID()}`,
    principal: { key: { id: "key_1" }, organization: { id: organizationId } },
    operation: "chat.completions",
    request: { outputTokens_max: 400 },
    model: { outputTokens_max: 1000, prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: 1000 } },
    plan: { ...noLimits, name: "test", ...limits },
    inputTokens: 100,
  } as unknown as Entry;
}
/** A request whose caller has these rates beside those of the plan. */
const enter = (limits: Partial<Plan>, whose: Partial<Entry["principal"]> = {}, model: object = {}) => {
  const one = entry(limits);
  return rated(rates).enter({ ...one, principal: { ...one.principal, ...whose }, model: { ...one.model, ...model } });
};
const faultOf = async (...asked: Parameters<typeof enter>) => (await laterFaultOf(enter(...asked)))!;
const end = {
  nanos: 0,
  outcome: "completed",
  stoppedBy: null,
  errorCode: null,
  route: null,
  reportRejected: null,
} as const;

test("a refusal of the ledger leaves no trace in the rates", async () => {
  refuses = new Fault("concurrency_limit_exceeded", "busy");
  for (let i = 0; i < 5; i++) expect(await faultOf({ requestsPerMinute: 1 })).toBe(refuses);
  refuses = null;
  expect((await enter({ requestsPerMinute: 1 })).rates.requests).toMatchObject({ limit: 1, remaining: 0 });
});

test("a full rate is refused before the ledger is asked, with headers and whole seconds", async () => {
  await enter({ requestsPerMinute: 1 });
  refuses = new Fault("usage_reserved", "the ledger was asked");
  const fault = await faultOf({ requestsPerMinute: 1 });
  expect(fault.code).toBe("rate_limit_exceeded");
  expect(fault.details).toMatchObject({ retryAfterSeconds: 60, headers: { "x-ratelimit-remaining-requests": "0" } });
});

test("a request that waited is counted by the rates that are in force then, not by those of its preparation", async () => {
  const prepared = entry({ requestsPerMinute: 100 });
  const planNow = () => entry({ requestsPerMinute: 1 }).plan;
  const { limit, remaining } = (await rated(rates).enter(prepared, { planNow })).rates.requests ?? {};
  expect({ limit, remaining }).toEqual({ limit: 1, remaining: 0 });
});

test("tokens are what the hold may come to, and what they were after the first settlement", async () => {
  const reservation = await enter({ tokensPerMinute: 10_000 });
  expect(reservation.rates.tokens?.remaining).toBe(9_500);
  const usage = { ...noUsage, inputTokens: 50, cachedInputTokens: 30, cacheWriteTokens: 10, outputTokens: 10 };
  await reservation.settle({ ...end, usage });
  await reservation.settle({ ...end, usage: noUsage });
  expect(settlements).toBe(1);
  expect((await enter({ tokensPerMinute: 10_000 })).rates.tokens?.remaining).toBe(10_000 - 100 - 500);
});

test("the least of a request above a whole limit: waiting does not help, and the limit is named", async () => {
  const fault = await faultOf({ tokensPerMinute: 355 });
  expect(fault.code).toBe("usage_limit_reached");
  expect(fault.message).toBe(
    "This request needs at least 356 tokens, more than the organization's whole limit of 355 tokens a minute. Send less input, or ask your administrator for a higher plan.",
  );
  expect(fault.details).toEqual({
    headers: { "x-should-retry": "false" },
    limit: { limitedBy: "organization", name: "tokens_per_minute", limit: 355, used: null, needed: 356 },
    body: {
      limit: "tokens_per_minute",
      limit_value: 355,
      needed: 356,
      limited_by: "organization",
      plan_type: expect.any(String),
    },
  });
  expect((await enter({ tokensPerMinute: 356 })).rates.tokens?.remaining).toBe(0);
});

test("a limit for models binds requests for those alone, beside the others", async () => {
  const of = (models: string | undefined, requestsPerMinute: number): RateSubject => ({
    ...{ limitedBy: "team", id: `team_1 ${models}`, limits: { requestsPerMinute, tokensPerMinute: null } },
    ...(models !== undefined && { models }),
  });
  const own = [of("acme/large", 1), of("acme/*", 2), of(undefined, 3)];
  const asked = (id: string) => laterFaultOf(enter({}, { rates: own }, { id }));
  expect(await asked("acme/large")).toBeNull();
  const byModel = await asked("acme/large");
  expect(byModel?.message).toBe("The team's limit of 1 request a minute for acme/large is reached. Try again in 60 s.");
  expect(byModel?.details.body).toEqual({ limited_by: "team", limited_models: "acme/large" });
  expect(await asked("acme/small")).toBeNull();
  expect((await asked("acme/small"))?.details.body).toEqual({ limited_by: "team", limited_models: "acme/*" });
  expect(await asked("other/small")).toBeNull();
  expect((await asked("other/small"))?.details.body).toEqual({ limited_by: "team" });
});

test("a renamed model keeps the limits a minute that name its old id or its prefix, by its aliases", async () => {
  for (const models of ["acme/writer", "acme/*"]) {
    const limits = { requestsPerMinute: 1, tokensPerMinute: null };
    const principal = { rates: [{ limitedBy: "key", id: `key_1 ${models}`, models, limits }] } as const;
    const asked = (id: string, aliases: string[]) => enter({}, principal, { id, aliases });
    await asked("vendor/writer-2", ["writer", "acme/writer"]);
    await asked("vendor/writer-2", ["writer"]);
    const refusal = await laterFaultOf(asked("vendor/writer-2", ["writer", "acme/writer"]));
    expect(refusal?.details.body).toEqual({ limited_by: "key", limited_models: models });
  }
});

test("a key's own limit and its team's bind beside the plan's, and the refusal says whose it was", async () => {
  const of = (limitedBy: "key" | "team", requestsPerMinute: number | null, tokensPerMinute: number | null) => ({
    ...{ limitedBy, id: `${limitedBy}_1`, limits: { requestsPerMinute, tokensPerMinute } },
  });
  const own = [of("key", 2, null), of("team", null, 1_500)];
  expect((await enter({ requestsPerMinute: 10 }, { rates: own })).rates).toMatchObject({
    requests: { limit: 2, remaining: 1 },
    tokens: { limit: 1_500, remaining: 1_000 },
  });
  await enter({}, { rates: own });
  const byKey = await faultOf({ requestsPerMinute: 10 }, { rates: own });
  expect(byKey?.message).toBe("The key's limit of 2 requests a minute is reached. Try again in 60 s.");
  expect(byKey?.details).toMatchObject({
    retryAfterSeconds: 60,
    body: { limited_by: "key" },
    headers: { "x-ratelimit-remaining-requests": "0" },
  });
  await enter({}, { rates: own.slice(1) });
  const byTeam = await faultOf({ requestsPerMinute: 10 }, { rates: own.slice(1) });
  expect(byTeam?.message).toBe("The team's limit of 1,500 tokens a minute is reached. Try again in 60 s.");
  const whole = await faultOf({ tokensPerMinute: 100 }, { rates: [of("key", null, 355)] });
  expect(whole?.message).toBe(
    "This request needs at least 356 tokens, more than the organization's whole limit of 100 tokens a minute. Send less input, or ask your administrator for a higher plan.",
  );
  expect(whole?.details.body).toMatchObject({
    limited_by: "organization",
    limit: "tokens_per_minute",
    limit_value: 100,
  });
  const equals = await faultOf({ tokensPerMinute: 300 }, { rates: [of("key", null, 300), of("team", null, 355)] });
  expect(equals?.message).toBe(
    "This request needs at least 356 tokens, more than the key's whole limit of 300 tokens a minute. Send less input, or ask your administrator for a higher limit of the key.",
  );
});

test("a raise of the organization's plan raises its limits of a minute, and gives none where there is none", async () => {
  const asked = (limits: Partial<Plan>) => {
    const raise = { requestsPerMinute: 7, tokensPerMinute: 5_000 };
    return enter(limits, { overPlan: { own: { requestsPerMinute: null, tokensPerMinute: null }, raise } });
  };
  expect((await asked({ requestsPerMinute: 2 })).rates).toMatchObject({ requests: { limit: 7 }, tokens: null });
  expect((await asked({ requestsPerMinute: 9 })).rates).toMatchObject({ requests: { limit: 9 } });
  expect((await asked({})).rates).toEqual({ requests: null, tokens: null });
});

test("an organization's own limits of a minute count in the place of its plan's, up, down, and where they say none", async () => {
  const asked = (requestsPerMinute: number | null) => {
    const raise = { requestsPerMinute: null, tokensPerMinute: null };
    const overPlan = { own: { requestsPerMinute, tokensPerMinute: 9_000 }, raise };
    return enter({ requestsPerMinute: 5 }, { overPlan });
  };
  expect((await asked(50)).rates).toMatchObject({ requests: { limit: 50 }, tokens: { limit: 9_000 } });
  expect((await asked(2)).rates).toMatchObject({ requests: { limit: 2 } });
  expect((await asked(null)).rates).toMatchObject({ requests: { limit: 5 } });
  expect((await asked(not_limited)).rates).toMatchObject({ requests: null, tokens: { limit: 9_000 } });
});

test("a refusal says what is so: the limit, what is left of it, what the request needs, and when there is room", async () => {
  const limit = fc.option(fc.integer({ min: 1, max: 3000 }), { nil: null });
  const takes = fc.array(
    fc.record({ input: fc.nat(2000), cap: fc.integer({ min: 1, max: 500 }), pause_ms: fc.nat(9000) }),
  );
  let refusals = 0;
  await fc.assert(
    fc.asyncProperty(limit, limit, takes, async (requestsPerMinute, tokensPerMinute, takes) => {
      let now_ms = 0;
      rates = memoryRates(() => now_ms);
      const limits = { requestsPerMinute: requestsPerMinute && Math.ceil(requestsPerMinute / 300), tokensPerMinute };
      for (const { input, cap, pause_ms } of takes) {
        now_ms += pause_ms;
        const one = { ...entry(limits), inputTokens: input, request: { outputTokens_max: cap } } as Entry;
        const asked = () => laterFaultOf(rated(rates).enter(one));
        const fault = await asked();
        if (!fault) continue;
        refusals += 1;
        const said = saidIn(fault.message);
        const tokens_min = input + Math.min(cap, 256);
        if (said.needs !== null) expect(said.needs).toBe(tokens_min);
        expect(said.limit).toBe(limits[said.name === "token" ? "tokensPerMinute" : "requestsPerMinute"]!);
        const { headers = {} } = fault.details;
        if (said.left !== null) expect(`${said.left}`).toBe(headers[`x-ratelimit-remaining-${said.name}s`]!);
        expect(said.needs ?? 1).toBeGreaterThan(said.whole ? said.limit : (said.left ?? 0));
        if (said.whole) continue;
        expect(said.seconds).toBe(fault.details.retryAfterSeconds!);
        now_ms += said.seconds! * 1000;
        expect(await asked()).toBeNull();
      }
    }),
    { numRuns: 300 },
  );
  expect(refusals).toBeGreaterThan(100);
});

/** The numbers in a message, each read from the sentence that states it. Fails if the message has any other number. */
function saidIn(message: string) {
  const number = (pattern: RegExp) => {
    const found = pattern.exec(message)?.[1];
    return found === undefined ? null : Number(found.replaceAll(",", ""));
  };
  const said = {
    needs: number(/needs at least (\S+) tokens?\b/),
    limit: number(/limit of (\S+) (?:token|request)s? a minute/)!,
    name: /(token|request)s? a minute/.exec(message)?.[1],
    left: number(/ has (\S+) left/),
    whole: message.includes("whole limit"),
    seconds: number(/Try again in (\S+) s\./),
  };
  const numbers = [said.needs, said.limit, said.left, said.seconds].filter((one) => one !== null);
  expect(message.match(/[\d,]*\d/g)).toHaveLength(numbers.length);
  return said;
}

test("where no store can count, nothing runs unless nothing is limited", async () => {
  const away = () => Promise.reject(new Error("away"));
  rates = { take: away, read: away, close: async () => {} };
  const fault = await faultOf({ requestsPerMinute: 1 });
  expect([fault.code, fault.details.retryAfterSeconds]).toEqual(["storage_unavailable", 5]);
  expect((await enter({})).rates).toEqual({ requests: null, tokens: null });
});
