/**
 * Writes receipts of refused requests in the background. The number of receipts that wait to be written is bounded;
 * while the store is away, receipts may be lost. A receipt that has not been written yet can be looked up here.
 */
import {
  type NewRefused,
  type RefusedRequest,
  type RefusedRequests,
  refused_per_second_max,
} from "../store/refused.ts";
import { gathered } from "../time/clock.ts";
import { forgetting } from "./forgetting.ts";

export interface RefusedLog {
  /** Adds a receipt. Never throws. Beyond ten refusals a second, an organization's refusals get no receipt. */
  add(request: Omit<NewRefused, "age_ms">): void;
  find(requestId: string): Promise<RefusedRequest | null>;
  /** Writes the waiting receipts, in one attempt. Never rejects. */
  stop(): Promise<void>;
}

export const refusedSettings = {
  write_ms: 100,
  /** The wait between attempts while the store is away. */
  retry_ms: 1_000,
  waiting_max: 1_000,
  forget_ms: 3_600_000,
};
export type RefusedSettings = typeof refusedSettings;

export function refusedLog(parts: {
  store: RefusedRequests;
  /** Monotonic milliseconds. */
  now_ms: () => number;
  failed: (cause: unknown) => void;
  settings?: Partial<RefusedSettings>;
}): RefusedLog {
  const { store, now_ms, failed } = parts;
  const settings = { ...refusedSettings, ...parts.settings };
  const waiting = new Map<string, { request: Omit<NewRefused, "age_ms">; at_ms: number }>();
  const counts = new Map<string, number>();
  let second = 0;
  const writes = gathered(write);
  const rounds = forgetting({
    forget: () => store.forget(),
    failed,
    every_ms: settings.forget_ms,
    pause_ms: settings.write_ms,
  });

  function hasRoom(organizationId: string, at_ms: number): boolean {
    if (Math.floor(at_ms / 1000) !== second) {
      second = Math.floor(at_ms / 1000);
      counts.clear();
    }
    const count = (counts.get(organizationId) ?? 0) + 1;
    counts.set(organizationId, count);
    return count <= refused_per_second_max && waiting.size < settings.waiting_max;
  }

  /** Writes the waiting receipts. Receipts that are added meanwhile wait for the next call. */
  async function write(): Promise<number | null> {
    const at_ms = now_ms();
    const batch = [...waiting.values()];
    try {
      await store.keep(batch.map(({ request, at_ms: refusedAt_ms }) => ({ ...request, age_ms: at_ms - refusedAt_ms })));
    } catch (cause) {
      failed(cause);
      return settings.retry_ms;
    }
    for (const { request } of batch) waiting.delete(request.requestId);
    return waiting.size > 0 ? settings.write_ms : null;
  }

  return {
    add(request) {
      const at_ms = now_ms();
      if (!hasRoom(request.organizationId, at_ms)) return;
      waiting.set(request.requestId, { request, at_ms });
      writes.ask(settings.write_ms);
    },
    async find(requestId) {
      const found = waiting.get(requestId);
      if (!found) return store.find(requestId);
      const refusedAt = new Date(Date.now() - (now_ms() - found.at_ms));
      return { ...found.request, personId: await store.personOf(found.request.keyId), refusedAt };
    },
    async stop() {
      await Promise.all([rounds.stop(), writes.stop()]);
      if (waiting.size > 0) await write();
    },
  };
}
