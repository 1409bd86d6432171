// The response headers from which Claude Code shows its notices at 75 % and at 95 % of the fullest limit.

import { expect, test } from "bun:test";
import { type WindowReading, type WindowReadings, windowKinds } from "../../../src/core/store/ledger.ts";
import { standingHeaders } from "../../../src/features/claude-code/limits.ts";

const family = "anthropic-ratelimit-unified";
const resetAt = new Date("2026-12-01T00:00:00.400Z");

function windowsOf(over: Partial<Record<WindowReading["kind"], Partial<WindowReading>>>): WindowReadings {
  const all = windowKinds.map((kind) => [
    kind,
    { kind, limit: null, used: 0, held: 0, startsAt: new Date(0), resetAt, ...over[kind] },
  ]);
  return Object.fromEntries(all) as WindowReadings;
}

const noticeAt = (used: number) => {
  const headers = standingHeaders({ windows: windowsOf({ month: { limit: 1000, used } }) });
  return [headers[`${family}-status`], headers[`${family}-overage-surpassed-threshold`]];
};

test("a notice comes at 75 % and at 95 % of a limit, and none before", () => {
  expect(noticeAt(749)).toEqual(["allowed", undefined]);
  expect(noticeAt(750)).toEqual(["allowed_warning", "0.75"]);
  expect(noticeAt(949)).toEqual(["allowed_warning", "0.75"]);
  expect(noticeAt(950)).toEqual(["allowed_warning", "0.95"]);
});

test("a request that passes never says that nothing is left", () => {
  const headers = standingHeaders({ windows: windowsOf({ session: { limit: 1000, used: 1000 } }) });
  expect(headers[`${family}-overage-utilization`]).toBe("0.99");
});

test("the fullest limit of organization, team, person and key speaks, with its reset to the second", () => {
  const later = new Date("2026-12-08T00:00:00Z");
  const own = windowsOf({ week: { limit: 100, used: 80, resetAt: later } });
  const windows = windowsOf({ month: { limit: 1000, used: 790 } });
  const headers = standingHeaders({ windows, subjects: [{ windows: own }] as never });
  expect(headers[`${family}-overage-utilization`]).toBe("0.80");
  expect(headers[`${family}-overage-reset`]).toBe(String(later.getTime() / 1000));
  const organization = standingHeaders({ windows });
  expect(organization[`${family}-overage-reset`]).toBe(String(Math.ceil(resetAt.getTime() / 1000)));
});

test("nothing is said where nothing is limited", () => {
  expect(standingHeaders({ windows: windowsOf({}) })).toEqual({});
});
