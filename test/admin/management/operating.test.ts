/** What operators read about a request, and from a check of the ledger, equals what the ledger says. */
import { expect, test } from "bun:test";
import type { ManagementContext } from "../../../src/admin/management/context.ts";
import { verbNamed } from "../../../src/admin/management/verbs.ts";
import { encode } from "../../../src/core/schema/codec.ts";
import type { Receipt } from "../../../src/core/store/ledger.ts";
import { dollars } from "../../harness/money.ts";

const at = (hour: number) => new Date(Date.UTC(2026, 10, 21, hour));
const sealed = { windows: 3, records: 40, days: 2, dayRecords: 9 };
const hex = (digit: string) => digit.repeat(32);
const receipt: Receipt = {
  requestId: `req_${hex("1")}`,
  organizationId: `org_${hex("2")}`,
  keyId: `key_${hex("3")}`,
  personId: null,
  operation: "chat.completions",
  model: "acme/m",
  stream: true,
  createdAt: at(3),
  endedAt: new Date(at(3).getTime() + 1_500),
  outcome: "completed",
  stoppedBy: null,
  errorCode: null,
  recovered: false,
  settledLateAt: null,
  detached: false,
  replayOf: null,
  usage: {
    source: "reported",
    inputTokens: 10,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 5,
    reasoningTokens: 0,
  },
  searches: 0,
  inputs: null,
  prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: 2000 },
  nanos: { held: 100, charged: 20, uncharged: 0 },
  source: "plan",
  windows: {
    session: { startsAt: at(0), resetAt: at(5), limit: 1_000, usedBefore: 250, usedAfter: 270 },
    week: { startsAt: at(0), resetAt: at(20), limit: null, usedBefore: 250, usedAfter: 270 },
    month: { startsAt: at(0), resetAt: at(23), limit: 2_000, usedBefore: 500, usedAfter: null },
  },
  route: null,
  reportRejected: null,
} as Receipt;

test("a request shows each window in percent and in money, before and after", async () => {
  const verb = verbNamed("findRequest");
  const context = {
    ledger: { receiptOfAny: async () => receipt },
    administration: { findOrganization: async () => ({ slug: "acme" }), findKey: async () => null },
    isInSight: () => true,
    isKeyInSight: async () => true,
    person: null,
    currency: async () => "USD",
  } as unknown as ManagementContext;
  const shown = await verb.act(context, { id: receipt.requestId });
  expect(encode(verb.answers, shown)).toMatchObject({
    organization: "acme",
    duration_ms: 1_500,
    windows: {
      session: {
        usage_percent_before: 25,
        usage_percent_after: 27,
        starts_at: "2026-11-21T00:00:00.000Z",
        reset_at: "2026-11-21T05:00:00.000Z",
        limit: dollars(1_000),
        used_before: dollars(250),
        used_after: dollars(270),
      },
      month: { usage_percent_before: 25, usage_percent_after: null, used_after: null },
    },
  });
});

test("a check says what it took on trust: the sealed windows, or nothing where it read everything", async () => {
  const context = {
    currency: async () => "USD",
    ledger: {
      check: async () => [],
      sealed: async () => sealed,
      lost: async () => ({ receipts: 0, nanos: 0, noticedAt: null, movedAt: null }),
    },
  } as unknown as ManagementContext;
  const check = (full: boolean) => verbNamed("checkUsage").act(context, { full });
  expect((await check(false)).trusted).toEqual(sealed);
  expect((await check(true)).trusted).toEqual({ windows: 0, records: 0, days: 0, dayRecords: 0 });
});

test("an id of something else is refused before anything is looked up", () => {
  for (const id of [receipt.keyId, "req_1", `req_${hex("g")}`, ""])
    expect(() => verbNamed("findRequest").take({ id })).toThrow();
  expect(verbNamed("findRequest").take({ id: receipt.requestId })).toEqual({ id: receipt.requestId });
});
