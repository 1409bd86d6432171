/**
 * The same hint as ample.ts, for keys that are limited, or whose team is: what the ledger last said of them to this node. A
 * key of which it said nothing is not limited, or new here; then the hint errs once, and an engine has begun in vain.
 */
import { type SubjectReading, windowKinds } from "../store/ledger.ts";
import { believed_ms, holds_fit_min, running_fit_min } from "./ample.ts";

export interface AmpleBudget {
  isAmple(keyId: string, units: number): boolean;
  /** Learns from the readings of a grant. */
  learn(keyId: string, subjects: readonly SubjectReading[] | undefined): void;
  /** Its own limit or its team's has refused it. */
  refused(keyId: string): void;
}

const keys_max = 10_000;

export function ampleBudget(now_ms: () => number): AmpleBudget {
  const known = new Map<string, { subjects: readonly SubjectReading[]; at_ms: number }>();
  function keep(keyId: string, subjects: readonly SubjectReading[], at_ms: number): void {
    known.delete(keyId);
    if (known.size >= keys_max) known.delete(known.keys().next().value!);
    known.set(keyId, { subjects, at_ms });
  }
  return {
    isAmple(keyId, units) {
      const last = known.get(keyId);
      if (!last) return true;
      return now_ms() - last.at_ms <= believed_ms && last.subjects.every((one) => hasRoom(one, units));
    },
    learn(keyId, subjects) {
      if (subjects) keep(keyId, subjects, now_ms());
      else known.delete(keyId);
    },
    refused: (keyId) => keep(keyId, [], Number.NEGATIVE_INFINITY),
  };
}

function hasRoom({ windows, concurrentRequests, running }: SubjectReading, units: number): boolean {
  if (concurrentRequests !== null && running * running_fit_min >= concurrentRequests) return false;
  return windowKinds.every((kind) => {
    const { limit, used, held } = windows[kind];
    return limit === null || used + held + holds_fit_min * units <= limit;
  });
}
