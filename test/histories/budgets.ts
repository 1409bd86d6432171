// Limits of keys and of a team in histories: which there are of a seed, and what must hold of them after each step. Every
// other organization has some. Its keys take turns, and two of three are in one team.

import type { SubjectReading, UsageLimits } from "../../src/store/ledger.ts";
import { windowKinds } from "../../src/store/ledger.ts";
import { type Chance, chanceOf } from "../faults/chance.ts";
import { type ModelSubject, runningOf } from "../store/budget-model.ts";
import type { LedgerModel } from "../store/ledger-model.ts";
import type { Say } from "./rules.ts";

export interface Budgets {
  subjects: readonly ModelSubject[];
  subjectsOf(keyId: string): readonly ModelSubject[];
}

const keys = 3;
const teamKeys = 2;

/** Of a request, by its id: `req_7`. */
export const keyIdOf = (requestId: string): string => `key_of_turn_${Number(requestId.split("_")[1]) % keys}`;

export function budgetsOf(seed: number, organizationId: string): Budgets {
  const chance = chanceOf(
    Math.imul(seed, 0x9e3779b1) ^ Math.imul(organizationId.length + organizationId.charCodeAt(4), 0x85ebca6b),
  );
  if (chance.next() < 0.5) return { subjects: [], subjectsOf: () => [] };
  const limited = Array.from({ length: keys }, (_, turn) =>
    chance.next() < 0.5 ? subjectOf(chance, `${organizationId} key_of_turn_${turn}`, "key") : null,
  );
  const team = chance.next() < 0.6 ? subjectOf(chance, `${organizationId} team`, "team") : null;
  const of = limited.map((key, turn) => [key, turn < teamKeys ? team : null].filter((one) => one !== null));
  return {
    subjects: [...limited, team].filter((one) => one !== null),
    subjectsOf: (keyId) => of[Number(keyId.split("key_of_turn_")[1])] ?? [],
  };
}

function subjectOf(chance: Chance, id: string, subject: ModelSubject["subject"]): ModelSubject {
  const limit = (probability: number) =>
    chance.next() < probability ? Math.round(4_000 * 100 ** chance.next()) : null;
  const concurrentRequests = chance.next() < 0.3 ? 1 + chance.below(4) : null;
  const limits: UsageLimits = { session: limit(0.5), week: limit(0.5), month: limit(0.5), concurrentRequests };
  return { id, subject, limits };
}

/** The rules of limits and sums, of every limited key and team. Sums are made anew from records and holds. */
export function judgeBudgets(model: LedgerModel, budgetsBy: ReadonlyMap<string, Budgets>, say: Say): void {
  const running = runningOf(model.holds.values());
  for (const [organizationId, { subjects, subjectsOf }] of budgetsBy) {
    for (const subject of subjects) {
      const { id, limits } = subject;
      const counts = (requestId: string, owner: string) =>
        owner === organizationId && subjectsOf(keyIdOf(requestId)).includes(subject);
      if ((running.get(id) ?? 0) > (limits.concurrentRequests ?? Infinity))
        say(
          "limit",
          `${running.get(id)} requests of ${id} run at a time, and its limit is ${limits.concurrentRequests}`,
        );
      for (const { kind, startsAt_ms, total } of model.budgets.windows(id)) {
        const { used, held } = total;
        let [recorded, holding] = [0, 0];
        for (const [requestId, { organizationId: owner, windows, charged }] of model.records)
          if (counts(requestId, owner) && windows?.[kind].startsAt_ms === startsAt_ms) recorded += charged;
        for (const [requestId, { facts, windows, units }] of model.holds)
          if (counts(requestId, facts.organizationId) && windows[kind].startsAt_ms === startsAt_ms) holding += units;
        if (used + held > (limits[kind] ?? Infinity))
          say("limit", `the ${kind} of ${id} has ${used} used and ${held} held, and its limit is ${limits[kind]}`);
        if (used !== recorded) say("sums", `the ${kind} of ${id} says ${used} used, and its records say ${recorded}`);
        if (held !== holding) say("sums", `the ${kind} of ${id} says ${held} held, and its holds say ${holding}`);
      }
    }
  }
}

/** What a key and its team had free when they were looked at. */
export function ownRoomOf(subjects: readonly SubjectReading[] = []): number {
  const rooms = subjects.flatMap(({ windows }) =>
    windowKinds.map((kind) => (windows[kind].limit ?? Infinity) - windows[kind].used - windows[kind].held),
  );
  return Math.min(Infinity, ...rooms);
}
