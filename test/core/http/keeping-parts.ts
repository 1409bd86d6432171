/**
 * Dependencies of the code for kept answers (stored for repeats and later reads), over stores that a test sets up
 * function by function.
 */

import type { Principal } from "../../../src/core/auth/verdict.ts";
import type { Call } from "../../../src/core/http/call.ts";
import { systemClock } from "../../../src/core/time/clock.ts";
import { Keeping } from "../../../src/features/responses/keeping.ts";
import type { KeepingNeeds } from "../../../src/features/responses/needs.ts";
import type { Kept } from "../../../src/features/responses/store/kept.ts";
import { laterFaultOf } from "../../harness/faults.ts";

export const name = { requestId: "req_1", organizationId: "org_1" };

/** An answer that began a minute ago, and has no response yet. */
export const openAnswer = (more: Partial<Kept> = {}): Kept => ({
  ...{ ...name, state: "open", body: "00", responseId: null, response: null, age_ms: 60_000 },
  ...more,
});

/** The receipt of a run that has ended. */
export const endedRun = (charged: number, recovered = false) => ({
  ...{ createdAt: new Date(0), endedAt: new Date(1) as Date | null },
  ...{ recovered, nanos: { charged } },
});

/** The dependencies for storing an answer. By default, the log accepts every entry, and is empty when it is read. */
export function needsOf(kept: { answers?: object; logs?: object; [part: string]: unknown }, receipt?: () => unknown) {
  const needs = {
    kept: {
      settings: () => ({ open_max: 1, answer_bytes_max: 100_000 }),
      open: new Set(),
      clock: systemClock(),
      room: { ask() {} },
      metrics: { kept() {}, unkept() {}, replayed() {} },
      grant_ms: () => 3_000,
      ...kept,
      answers: { begin: async () => "begun", ...kept.answers },
      logs: { append: async () => "appended", read: async () => [], remove: async () => {}, ...kept.logs },
    },
    ledger: { receipt: async () => receipt?.() ?? null },
    limits: { first_event_hold_ms: 0 },
    log: { event() {} },
  };
  return needs as unknown as KeepingNeeds;
}

/** The `Keeping` of the answer to this call, which has an idempotency key: it stores the answer. */
export function keepingOf(needs: KeepingNeeds, call: object, as: { isBackground?: boolean; isStream?: boolean }) {
  const organization = { id: name.organizationId, keepsContent: true };
  const keptAs = { claim: { key: "00", body: "00" }, isBackground: false, isStream: false, ...as };
  return new Keeping(needs, { ...name, ...call } as unknown as Call, { organization } as Principal, keptAs);
}

/** A call whose client is still connected. */
export const waitingCall = {
  ...{ request: { signal: { aborted: false } }, signal: { throwIfAborted() {} } },
} as unknown as Call;

/** The code of the fault with which a promise is rejected; null if it is not rejected. */
export const codeOf = async (asked: Promise<unknown>) => (await laterFaultOf(asked))?.code ?? null;
