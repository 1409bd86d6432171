// Sliding rates before the entrance: taken first, given back when the ledger refuses, corrected once at the end.

import { beforeEach, expect, test } from "bun:test";
import type { Entrance } from "../../src/admission/entrance.ts";
import { type RatedEntry, ratedEntrance } from "../../src/admission/rates.ts";
import type { Reservation } from "../../src/admission/reservation.ts";
import { Fault } from "../../src/inference/fault.ts";
import { noUsage } from "../../src/inference/usage.ts";
import { memoryRates } from "../../src/memory/rates.ts";
import { noLimits, type Plan } from "../../src/store/plan.ts";
import type { Rates } from "../../src/store/rates.ts";
import { organizationId } from "./virtual-time.ts";

let rates: Rates;
let settlements: number;
let refuses: Fault | null;
beforeEach(() => {
  rates = memoryRates(() => 0);
  settlements = 0;
  refuses = null;
});

const door: Entrance = {
  async enter() {
    if (refuses) throw refuses;
    const settle = async () => {
      settlements += 1;
    };
    return { settle } as unknown as Reservation;
  },
};

/** 100 tokens of input, at most 400 of output. */
function entry(limits: Partial<Plan>): RatedEntry {
  return {
    requestId: `req_${crypto.randomUUID()}`,
    principal: { key: { id: "key_1" }, organization: { id: organizationId } },
    operation: "chat.completions",
    request: { outputTokensMax: 400 },
    model: { outputTokensMax: 1000, prices: { input: 1, cachedInput: 1, cacheWrite: 1, output: 1 } },
    plan: { ...noLimits, name: "test", ...limits },
    inputTokens: 100,
    rateHeaders: (readings: { requests: { remaining: number } | null }) => ({
      left: `${readings.requests?.remaining}`,
    }),
  } as unknown as RatedEntry;
}
const enter = (limits: Partial<Plan>) => ratedEntrance(door, rates).enter(entry(limits));
const faultOf = async (limits: Partial<Plan>) => {
  const thrown = await enter(limits).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(Fault);
  return thrown as Fault;
};
const end = { units: 0, outcome: "completed", stoppedBy: null, errorCode: null, route: null } as const;

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
  expect(fault.details).toMatchObject({ retryAfterSeconds: 60, headers: { left: "0" } });
});

test("tokens are what the hold may come to, and what they were after the first settlement", async () => {
  const reservation = await enter({ tokensPerMinute: 10_000 });
  expect(reservation.rates.tokens?.remaining).toBe(9_500);
  const usage = { ...noUsage, inputTokens: 50, cachedInputTokens: 30, cacheWriteTokens: 10, outputTokens: 10 };
  await reservation.settle({ ...end, usage });
  await reservation.settle({ ...end, usage: noUsage });
  expect(settlements).toBe(2);
  expect((await enter({ tokensPerMinute: 10_000 })).rates.tokens?.remaining).toBe(10_000 - 100 - 500);
});

test("the least of a request above a whole limit: waiting does not help, and the limit is named", async () => {
  const fault = await faultOf({ tokensPerMinute: 355 });
  expect(fault.code).toBe("rate_limit_exceeded");
  expect(fault.message).toContain("at least 356 tokens");
  expect(fault.message).toContain("355 tokens a minute");
  expect(fault.details).toMatchObject({ retryAfterSeconds: 60, headers: { "x-should-retry": "false" } });
  expect((await enter({ tokensPerMinute: 356 })).rates.tokens?.remaining).toBe(0);
});

test("where no store can count, nothing runs unless nothing is limited", async () => {
  rates = { take: () => Promise.reject(new Error("away")), close: async () => {} };
  const fault = await faultOf({ requestsPerMinute: 1 });
  expect([fault.code, fault.details.retryAfterSeconds]).toEqual(["storage_unavailable", 5]);
  expect((await enter({})).rates).toEqual({ requests: null, tokens: null });
});
