/**
 * The hint that lets an engine begin while the ledger still decides about a request. The hint is given only after an
 * earlier grant, only if that grant left plenty of the limits, and only for a short time after it.
 */
import { expect, test } from "bun:test";
import { Ample } from "../../../src/core/admission/allowance.ts";
import type { SubjectReading, WindowReadings } from "../../../src/core/store/ledger.ts";
import { noLimits } from "../../../src/core/store/plan.ts";

const reading = (used: number, held: number) => ({
  kind: "session" as const,
  limit: null,
  used,
  held,
  startsAt: new Date(0),
  resetAt: new Date(1),
});
const windows = (used: number, held = 0, week: number | null = null): WindowReadings => ({
  session: reading(used, held),
  week: { ...reading(used, held), limit: week },
  month: reading(used, held),
});

const request = (organizationId: string, nanos: number, running: number, plan = noLimits) => ({
  organizationId,
  keyId: "key_1",
  model: "acme/large",
  plan,
  nanos,
  running,
});
const organization = { organizationId: "org_1", keyId: "key_1", model: "acme/large" };

test("nothing is assumed before the first grant, nor long after the last, nor after a refusal", () => {
  let now_ms = 0;
  const ample = new Ample(() => now_ms);
  expect(ample.isAmple(request("org_1", 10, 0))).toBe(false);
  ample.granted(organization, { windows: windows(0) });
  expect(ample.isAmple(request("org_1", 10, 0))).toBe(true);
  expect(ample.isAmple(request("org_2", 10, 0))).toBe(false);
  now_ms = 5_001;
  expect(ample.isAmple(request("org_1", 10, 0))).toBe(false);
  ample.granted(organization, { windows: windows(0) });
  ample.forget("org_1");
  expect(ample.isAmple(request("org_1", 10, 0))).toBe(false);
});

test("each window must fit the request twenty times over, holds counted; and the concurrency four times", () => {
  const ample = new Ample(() => 0);
  const plan = { ...noLimits, concurrentRequests: 8 };
  ample.granted(organization, { windows: windows(500, 299, 1000) });
  expect(ample.isAmple(request("org_1", 10, 1, plan))).toBe(true);
  expect(ample.isAmple(request("org_1", 11, 1, plan))).toBe(false);
  expect(ample.isAmple(request("org_1", 10, 2, plan))).toBe(false);
});

test("an organization's own limit of open requests counts in the place of its plan's", () => {
  const ample = new Ample(() => 0);
  const plan = { ...noLimits, concurrentRequests: 4 };
  ample.granted(organization, { windows: windows(0), concurrentRequests: 1 });
  expect(ample.isAmple(request("org_1", 10, 1))).toBe(false);
  ample.granted(organization, { windows: windows(0), concurrentRequests: null });
  expect(ample.isAmple(request("org_1", 10, 1, plan))).toBe(true);
  ample.granted(organization, { windows: windows(0) });
  expect(ample.isAmple(request("org_1", 10, 1, plan))).toBe(false);
});

test("a hold is slight if a hundred of it fit into what is left of each window, of every subject", () => {
  const ample = new Ample(() => 0);
  expect(ample.isSlight(request("org_1", 10, 0))).toBe(false);
  ample.granted(organization, { windows: windows(500, 300, 1800) });
  expect(ample.isSlight(request("org_1", 10, 0))).toBe(true);
  expect(ample.isSlight(request("org_1", 11, 0))).toBe(false);
  const subject = { limitedBy: "key" as const };
  const [concurrentRequests, running] = [null, 0];
  const key = { subject, windows: windows(0, 0, 999), concurrentRequests, running } as unknown as SubjectReading;
  ample.granted(organization, { windows: windows(0), subjects: [key] });
  expect(ample.isSlight(request("org_1", 9, 0))).toBe(true);
  expect(ample.isSlight(request("org_1", 10, 0))).toBe(false);
});
