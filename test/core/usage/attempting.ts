// What attempts for one request need, and what comes of them.

import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import type { AttemptRequest, EngineAnswer, RunRequest } from "../../../src/core/usage/record.ts";

/**
 * A granted request with room for its answer, whose caller stays and which nothing ends; the members of `more` replace
 * those of the request.
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
