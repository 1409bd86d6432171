/** Knows the open requests, and whether new ones are accepted: one owner of both, so that a drain misses none. */
import { Fault } from "../inference/fault.ts";
import { within } from "../time/cancellation.ts";
import { Present, type PresentEntry } from "../time/repeating.ts";
import type { Call } from "./call.ts";

export interface Lifecycle {
  readonly draining: boolean;
  readonly openCount: number;
  /** The open requests whose answers are being streamed. */
  readonly streamCount: number;
  /** Whether a request without a large body waits for the start of its answer. */
  smallWait(): boolean;
  enter(call: Call): PresentEntry<Call>;
  leave(place: PresentEntry<Call>): void;
  /** Marks the node as not ready. Requests that still arrive are served. */
  startDraining(): void;
  /**
   * Resolves when no request is open, or after `ms`. Requests that are still open then end with their protocol's error.
   */
  finish(ms: number): Promise<void>;
}

/** The time that streams get to write their error and settle. */
const farewell_ms = 2000;

export function lifecycle(): Lifecycle {
  const open = new Present<Call>();
  let draining = false;
  let emptied: (() => void) | null = null;

  async function empty(ms: number): Promise<void> {
    if (open.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    emptied = resolve;
    await within(promise, ms, "the last open request").catch(() => {});
  }

  return {
    get draining() {
      return draining;
    },
    get openCount() {
      return open.size;
    },
    get streamCount() {
      let streams = 0;
      for (const call of open.members()) if (call.isStreaming) streams += 1;
      return streams;
    },
    smallWait() {
      for (const call of open.members()) if (!call.isStreaming && !call.takesTurns) return true;
      return false;
    },
    enter: (call) => open.enter(call),
    leave(place) {
      open.leave(place);
      if (open.size === 0) emptied?.();
    },
    startDraining() {
      draining = true;
    },
    async finish(ms) {
      await empty(ms);
      if (open.size === 0) return;
      for (const call of open.members()) {
        call.end(
          new Fault("draining", "The service is restarting. Please send the request again.", { retryAfterSeconds: 1 }),
        );
      }
      await empty(farewell_ms);
    },
  };
}
