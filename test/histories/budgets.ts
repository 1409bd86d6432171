// Limits of keys and of teams in histories: which there are of a seed, how they change, and what must hold of them after
// each step. Two of three organizations have some. Their keys take turns, and at first two of three are in one team.

import type { SubjectReading, UsageLimits } from "../../src/store/ledger.ts";
import { windowKinds } from "../../src/store/ledger.ts";
import { type Chance, chanceOf } from "../faults/chance.ts";
import type { ModelSubject, OwnLimits } from "../store/budget-model.ts";
import type { LedgerModel } from "../store/ledger-model.ts";
import type { Account } from "./account.ts";
import type { Say } from "./rules.ts";

export interface Budgets {
  /** Before anything changes. */
  began: OwnLimits;
  /** All that are limited at some time, counted from the beginning. */
  subjects: readonly ModelSubject[];
  /** As the key is at this moment. */
  subjectsOf(keyId: string): readonly ModelSubject[];
}

const keys = 3;
const teamKeys = 2;
const teamNames = ["team", "other team"] as const;
const keyOfTurn = (turn: number) => `key_of_turn_${turn}`;

/** Of a request, by its id: `req_7`. */
export const keyIdOf = (requestId: string): string => keyOfTurn(Number(requestId.split("_")[1]) % keys);

/** `now` is what the store goes by: it says what counts at this moment. */
export function budgetsOf(seed: number, organizationId: string, now: () => OwnLimits): Budgets {
  const chance = chanceOf(
    Math.imul(seed, 0x9e3779b1) ^ Math.imul(organizationId.length + organizationId.charCodeAt(4), 0x85ebca6b),
  );
  const isAny = chance.next() >= 0.35;
  const limits = new Map<string, UsageLimits>();
  const limited = (probability: number, id: string) => {
    if (isAny && chance.next() < probability) limits.set(id, limitsOf(chance));
    return limits.has(id) ? id : null;
  };
  const keyIds = Array.from({ length: keys }, (_, turn) => limited(0.5, idOf(organizationId, keyOfTurn(turn))));
  const [team = null, other = null] = teamNames.map((name) => limited(0.6, idOf(organizationId, name)));
  const teams = new Map(
    Array.from({ length: keys }, (_, turn) => [keyOfTurn(turn), turn < teamKeys ? team : other] as const),
  );
  const subjectOf = (id: string, subject: ModelSubject["subject"]): ModelSubject => ({
    ...{ id, subject },
    get limits() {
      return now().limits.get(id)!;
    },
  });
  const ofKeys = new Map(
    keyIds.flatMap((id, turn) => (id === null ? [] : [[keyOfTurn(turn), subjectOf(id, "key")] as const])),
  );
  const ofTeams = [team, other].flatMap((id) => (id === null ? [] : [subjectOf(id, "team")]));
  return {
    began: { limits, teams },
    subjects: [...ofKeys.values(), ...ofTeams],
    subjectsOf(keyId) {
      const key = ofKeys.get(keyId);
      const team = ofTeams.find(({ id }) => id === now().teams.get(keyId));
      return [...(key ? [key] : []), ...(team ? [team] : [])];
    },
  };
}

const idOf = (organizationId: string, name: string) => `${organizationId} ${name}`;

function limitsOf(chance: Chance): UsageLimits {
  const limit = (probability: number) =>
    chance.next() < probability ? Math.round(4_000 * 100 ** chance.next()) : null;
  const concurrentRequests = chance.next() < 0.3 ? 1 + chance.below(4) : null;
  return { session: limit(0.5), week: limit(0.5), month: limit(0.5), concurrentRequests };
}

/** Of one of those that an organization has, if it has any; numbers stand for whichever. */
export type BudgetChange =
  | { kind: "budget"; subject: number; limits: UsageLimits }
  | { kind: "team"; key: number; team: number };

export function budgetChangeOf(chance: Chance, kind: BudgetChange["kind"]): BudgetChange {
  if (kind === "team") return { kind, key: chance.below(keys), team: chance.below(teamNames.length + 1) };
  return { kind, subject: chance.below(keys + teamNames.length), limits: limitsOf(chance) };
}

/** What is set then. */
export function changedBudget(now: OwnLimits, { subjects }: Budgets, change: BudgetChange): OwnLimits {
  if (subjects.length === 0) return now;
  if (change.kind === "budget") {
    const { id } = subjects[change.subject % subjects.length]!;
    return { ...now, limits: new Map(now.limits).set(id, change.limits) };
  }
  const teams = [null, ...subjects.flatMap(({ id, subject }) => (subject === "team" ? [id] : []))];
  return { ...now, teams: new Map(now.teams).set(keyOfTurn(change.key), teams[change.team % teams.length]!) };
}

/** Whose limits or team differ, by the ids that nodes know. */
export function changedSubjects(organizationId: string, before: OwnLimits, after: OwnLimits): string[] {
  const named = [...after.limits].filter(([id, limits]) => before.limits.get(id) !== limits).map(([id]) => id);
  const keyIds = [...after.teams].filter(([keyId, team]) => before.teams.get(keyId) !== team).map(([keyId]) => keyId);
  return [...named.map((id) => id.replace(`${organizationId} key_`, "key_")), ...keyIds];
}

/** What a window or a subject had when it was last looked at. */
interface Seen {
  taken: number;
  used: number;
}

/** The sums and limits of every key and team that is limited. Sums are made anew from records and holds. */
export class BudgetBooks {
  readonly #seen = new Map<string, Seen>();
  readonly #running = new Map<string, number>();

  constructor(
    readonly budgetsBy: ReadonlyMap<string, Budgets>,
    /** Each knows the subjects that it was admitted to. */
    readonly accounts: ReadonlyMap<string, Account>,
    readonly say: Say,
  ) {}

  /** Past a limit that was lowered nothing rises, and what stands there may stay. Unchecked: the store woke up in the past. */
  addUp(model: LedgerModel, isChecked: boolean): void {
    for (const { subjects } of this.budgetsBy.values())
      for (const subject of subjects) {
        this.#countRunning(model, subject, isChecked);
        this.#countWindows(model, subject, isChecked);
      }
  }

  #counts(requestId: string, subject: ModelSubject): boolean {
    return this.accounts.get(requestId)?.grant?.subjects.includes(subject.id) ?? false;
  }

  #countRunning(model: LedgerModel, subject: ModelSubject, isChecked: boolean): void {
    const { id, limits } = subject;
    const running = [...model.holds.keys()].filter((requestId) => this.#counts(requestId, subject)).length;
    if (isChecked && running > (limits.concurrentRequests ?? Infinity) && running > (this.#running.get(id) ?? 0))
      this.say("limit", `${running} requests of ${id} run at a time, and its limit is ${limits.concurrentRequests}`);
    this.#running.set(id, running);
  }

  #countWindows(model: LedgerModel, subject: ModelSubject, isChecked: boolean): void {
    const { id, limits } = subject;
    for (const { kind, startsAt_ms, total } of model.budgets.windows(id)) {
      const { used, held } = total;
      let [recorded, holding] = [0, 0];
      for (const [id, { windows, charged, lateOf = id }] of model.records)
        if (windows?.[kind].startsAt_ms === startsAt_ms && this.#counts(lateOf, subject)) recorded += charged;
      for (const [requestId, { windows, units }] of model.holds)
        if (windows[kind].startsAt_ms === startsAt_ms && this.#counts(requestId, subject)) holding += units;
      const name = `${id} ${kind} ${startsAt_ms}`;
      const seen = this.#seen.get(name) ?? { taken: 0, used: 0 };
      const limit = limits[kind] ?? Infinity;
      const isPast = used > limit ? used > seen.used : used + held > limit && used + held > seen.taken;
      if (isChecked && isPast)
        this.say("limit", `the ${kind} of ${id} has ${used} used and ${held} held, and its limit is ${limit}`);
      this.#seen.set(name, { taken: used + held, used });
      if (used !== recorded)
        this.say("sums", `the ${kind} of ${id} says ${used} used, and its records say ${recorded}`);
      if (held !== holding) this.say("sums", `the ${kind} of ${id} says ${held} held, and its holds say ${holding}`);
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
