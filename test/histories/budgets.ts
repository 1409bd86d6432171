// Limits of keys, people and teams in histories (simulated runs): the limits that a seed generates, their changes, and
// the checks of them after each step. Two of three organizations have such limits. An organization's requests use its
// keys in turn, and at first two of its three keys are in one team.

import type { SubjectReading, UsageLimits, WindowKind } from "../../src/core/store/ledger.ts";
import { windowKinds } from "../../src/core/store/ledger.ts";
import { type ModelSubject, type OwnLimits, underRaise } from "../core/store/budget-model.ts";
import type { LedgerModel, ModelRecord } from "../core/store/ledger-model.ts";
import { limitIn } from "../core/store/windows-model.ts";
import { type Chance, chanceOf } from "../faults/chance.ts";
import type { Account } from "./account.ts";
import {
  beganModels,
  changedModels,
  idOfModels,
  type ModelsChange,
  modelsChangeOf,
  modelsOf,
  parentOf,
} from "./models.ts";
import {
  beganPeople,
  changedPeople,
  limitedPerson,
  type PersonChange,
  personChangeOf,
  personOf,
  personSubjectOf,
} from "./people.ts";
import { type RaiseChange, raiseChangeOf } from "./raises.ts";
import type { Say } from "./rules.ts";

export interface Budgets {
  /** The limits before anything changes. */
  began: OwnLimits;
  /** All subjects that are limited at some time in the history. Their usage is counted from the beginning. */
  subjects: readonly ModelSubject[];
  /** The limited subjects of a request for a model, with the key's team and person as they are now. */
  subjectsOf(keyId: string, model: string): readonly ModelSubject[];
}

const keys = 3;
/** The number of keys in the first team, and also the number of keys of the first person. */
const teamKeys = 2;
const teamNames = ["team", "other team"] as const;
const keyOfTurn = (turn: number) => `key_of_turn_${turn}`;

/** The key of a request, by the request's id: `req_7`. */
export const keyIdOf = (requestId: string): string => keyOfTurn(Number(requestId.split("_")[1]) % keys);

/** The inputs of the store's limits: the limits that are set at this moment, and the store's clock. */
interface SetLimits {
  ownLimits(organizationId: string): OwnLimits;
  readonly clock_ms: number;
}

export function budgetsOf(seed: number, organizationId: string, store: () => SetLimits): Budgets {
  const now = () => store().ownLimits(organizationId);
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
  const people = isAny ? beganPeople(chance, organizationId, [team, other], limitsOf) : null;
  for (const [id, own] of people?.limits ?? []) limits.set(id, own);
  const parents = [
    ...Array.from({ length: keys }, (_, turn) => ({
      parent: idOf(organizationId, keyOfTurn(turn)),
      subject: "key" as const,
    })),
    ...[...(people?.limits.keys() ?? [])].map((parent) => ({ parent, subject: "person" as const })),
    ...[team, other].flatMap((parent) => (parent === null ? [] : [{ parent, subject: "team" as const }])),
    { parent: organizationId, subject: "organization" as const },
  ];
  const models = isAny ? beganModels(chance, parents, limitsOf) : [];
  for (const one of models) limits.set(idOfModels(one), one.limits);
  const subjectOf = (id: string, subject: ModelSubject["subject"], models?: string): ModelSubject => ({
    ...{ id, subject, ...(models !== undefined && { models }) },
    get limits() {
      return underRaise(now().limits.get(id)!, now().raises?.get(id), store().clock_ms);
    },
  });
  const ofKeys = new Map(
    keyIds.flatMap((id, turn) => (id === null ? [] : [[keyOfTurn(turn), subjectOf(id, "key")] as const])),
  );
  const ofPeople = [...(people?.limits.keys() ?? [])].map((id) => subjectOf(id, "person"));
  const ofTeams = [team, other].flatMap((id) => (id === null ? [] : [subjectOf(id, "team")]));
  const forModels = models.map((one) => subjectOf(idOfModels(one), one.subject, one.pattern));
  return {
    began: { limits, teams, ...(people ? { people: people.began } : {}) },
    subjects: [...ofKeys.values(), ...ofPeople, ...ofTeams, ...forModels],
    subjectsOf(keyId, model) {
      const key = ofKeys.get(keyId);
      const person = ofPeople.find(({ id }) => id === personSubjectOf(organizationId, personOf(keyId)));
      const team = ofTeams.find(({ id }) => id === now().teams.get(keyId));
      const own = [...(key ? [key] : []), ...(person ? [person] : []), ...(team ? [team] : [])];
      const ids = [organizationId, idOf(organizationId, keyId), ...own.map(({ id }) => id)];
      return [...own, ...modelsOf(forModels, ids, model)];
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

/** A change to one of the subjects that an organization has, if it has any; the numbers choose which one. */
export type BudgetChange =
  | { kind: "budget"; subject: number; limits: UsageLimits }
  | { kind: "team"; key: number; team: number }
  | ModelsChange
  | PersonChange
  | RaiseChange;

export function budgetChangeOf(chance: Chance, kind: BudgetChange["kind"]): BudgetChange {
  if (kind === "person") return personChangeOf(chance, limitsOf(chance));
  if (kind === "raise") return raiseChangeOf(chance);
  if (kind === "models") return modelsChangeOf(chance, limitsOf(chance));
  if (kind === "team") return { kind, key: chance.below(keys), team: chance.below(teamNames.length + 1) };
  return { kind, subject: chance.below(keys + teamNames.length), limits: limitsOf(chance) };
}

/** The limits of this organization after a change. */
export function changedBudget(
  organizationId: string,
  now: OwnLimits,
  { subjects }: Budgets,
  change: Exclude<BudgetChange, RaiseChange>,
): OwnLimits {
  if (subjects.length === 0) return now;
  if (change.kind === "models") return changedModels(now, subjects, change);
  if (change.kind === "budget") {
    const forAll = subjects.filter(({ models }) => models === undefined);
    if (forAll.length === 0) return now;
    const { id, subject } = forAll[change.subject % forAll.length]!;
    if (subject === "person") return limitedPerson(now, organizationId, id, change.limits);
    return { ...now, limits: new Map(now.limits).set(id, change.limits) };
  }
  if (change.kind === "person") return changedPeople(now, organizationId, change, "here");
  const teams = [null, ...subjects.flatMap(({ id, subject, models }) => (subject === "team" && !models ? [id] : []))];
  return { ...now, teams: new Map(now.teams).set(keyOfTurn(change.key), teams[change.team % teams.length]!) };
}

/** The ids, as nodes know them, of the subjects whose limits, raise or team differ before and after. */
export function changedSubjects(organizationId: string, before: OwnLimits, after: OwnLimits): string[] {
  const named = [...after.limits].filter(([id, limits]) => before.limits.get(id) !== limits).map(([id]) => id);
  const raised = [...new Set([...(before.raises?.keys() ?? []), ...(after.raises?.keys() ?? [])])].filter(
    (id) => before.raises?.get(id) !== after.raises?.get(id),
  );
  const keyIds = [...after.teams].filter(([keyId, team]) => before.teams.get(keyId) !== team).map(([keyId]) => keyId);
  return [...[...named, ...raised].map((id) => knownAs(organizationId, id)), ...keyIds];
}

/**
 * The id by which nodes know a subject of this organization: keys and people have the same id in all organizations, and
 * limits for models have the id of the subject that they belong to.
 */
export const knownAs = (organizationId: string, id: string): string =>
  parentOf(id).replace(`${organizationId} key_`, "key_").replace(`${organizationId} per_`, "per_");

/** The amounts of a window at the previous check: used, and used and held together (`taken`). */
interface Seen {
  taken: number;
  used: number;
}

/** The sum of a subject's records and of its holds in one window. */
interface Sum {
  kind: WindowKind;
  startsAt_ms: number;
  recorded: number;
  holding: number;
}

/**
 * The sums and limits of every limited subject other than organizations. The sums are computed independently, from
 * records and holds.
 */
export class BudgetBooks {
  /**
   * The key is the store's object for a total, which lives until a crash; the value is the amounts at the previous
   * check.
   */
  readonly #seen = new WeakMap<object, Seen>();
  #running = new Map<string, number>();

  constructor(
    readonly budgetsBy: ReadonlyMap<string, Budgets>,
    /** The accounts of requests; each has the subjects that were limited when its request was admitted. */
    readonly accounts: ReadonlyMap<string, Account>,
    readonly say: Say,
  ) {}

  /**
   * Compares all totals with limits and sums. A total that exceeds a lowered limit may stay, but must not rise.
   * `isChecked` is false when the store was set back to the past.
   */
  addUp(model: LedgerModel, isChecked: boolean): void {
    const sums = new Map<string, Sum[]>();
    const running = new Map<string, number>();
    for (const [id, { windows, charged, lateOf = id }] of model.records)
      if (windows) for (const subject of this.#subjectsOf(lateOf)) add(sums, subject, windows, charged, 0);
    for (const [id, { windows, nanos }] of model.holds)
      for (const subject of this.#subjectsOf(id)) {
        add(sums, subject, windows, 0, nanos);
        running.set(subject, (running.get(subject) ?? 0) + 1);
      }
    for (const { subjects } of this.budgetsBy.values())
      for (const subject of subjects) {
        if (isChecked) this.#judgeRunning(subject, running.get(subject.id) ?? 0);
        this.#judgeWindows(subject, model.budgets.windows(subject.id), sums.get(subject.id) ?? [], isChecked);
      }
    this.#running = running;
  }

  #subjectsOf(requestId: string): readonly string[] {
    return this.accounts.get(requestId)?.grant?.subjects ?? [];
  }

  #judgeRunning({ id, limits }: ModelSubject, running: number): void {
    if (running > (limits.concurrentRequests ?? Infinity) && running > (this.#running.get(id) ?? 0))
      this.say("limit", `${running} requests of ${id} run at a time, and its limit is ${limits.concurrentRequests}`);
  }

  #judgeWindows(
    { id, limits }: ModelSubject,
    windows: ReturnType<LedgerModel["budgets"]["windows"]>,
    sums: readonly Sum[],
    isChecked: boolean,
  ): void {
    for (const window of windows) {
      const { kind, startsAt_ms, total } = window;
      const { used, held } = total;
      const { recorded, holding } = sumAt(sums, kind, startsAt_ms) ?? { recorded: 0, holding: 0 };
      const seen = this.#seen.get(total) ?? { taken: 0, used: 0 };
      const limit = limitIn(limits[kind] ?? Infinity, window);
      const isPast = used > limit ? used > seen.used : used + held > limit && used + held > seen.taken;
      if (isChecked && isPast)
        this.say("limit", `the ${kind} of ${id} has ${used} used and ${held} held, and its limit is ${limit}`);
      this.#seen.set(total, { taken: used + held, used });
      if (used !== recorded)
        this.say("sums", `the ${kind} of ${id} says ${used} used, and its records say ${recorded}`);
      if (held !== holding) this.say("sums", `the ${kind} of ${id} says ${held} held, and its holds say ${holding}`);
    }
    for (const { kind, startsAt_ms, recorded, holding } of sums)
      if (!windows.some((one) => one.kind === kind && one.startsAt_ms === startsAt_ms))
        this.say("sums", `${id} has no such ${kind}, and its records say ${recorded} used, its holds ${holding} held`);
  }
}

function add(
  sums: Map<string, Sum[]>,
  subject: string,
  windows: NonNullable<ModelRecord["windows"]>,
  recorded: number,
  holding: number,
): void {
  const known = sums.get(subject) ?? [];
  sums.set(subject, known);
  for (const kind of windowKinds) {
    const { startsAt_ms } = windows[kind];
    const sum = sumAt(known, kind, startsAt_ms);
    if (!sum) known.push({ kind, startsAt_ms, recorded, holding });
    else {
      sum.recorded += recorded;
      sum.holding += holding;
    }
  }
}

const sumAt = (sums: readonly Sum[], kind: WindowKind, startsAt_ms: number): Sum | undefined =>
  sums.find((one) => one.kind === kind && one.startsAt_ms === startsAt_ms);

/**
 * The fewest nanos that any window of these subjects leaves, as the windows were read; windows of the organization do
 * not count here.
 */
export function ownRoomOf(subjects: readonly SubjectReading[] = []): number {
  const rooms = subjects.flatMap(({ windows }) =>
    windowKinds.map((kind) => (windows[kind].limit ?? Infinity) - windows[kind].used - windows[kind].held),
  );
  return Math.min(Infinity, ...rooms);
}
