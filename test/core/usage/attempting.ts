// Helpers for tests of attempts: the request of an attempt, and the events of its answer.

import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import type { AttemptRequest, EngineAnswer, RunRequest } from "../../../src/core/usage/record.ts";

/**
 * A granted request with room for 1,000 output tokens, whose caller stays connected and which nothing ends; the members
 * of `more` replace those of the request.
 */
export function attempting(asked: RunRequest, more: Partial<AttemptRequest> = {}): AttemptRequest {
  return {
    ...{ asked, room: { allowed: 1000, held: 1000 }, granted: Promise.resolve() },
    ...{ signal: new Cancellation(), halted: new Cancellation() },
    ...more,
  };
}

export async function eventsOf({ events }: Pick<EngineAnswer, "events">): Promise<InferenceEvent[]> {
  return (await Array.fromAsync(events)).flat();
}
