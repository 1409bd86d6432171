// Limits for models in histories (simulated runs): of keys, people, teams and organizations, for one of the two models
// that are requested or, by their prefix, for both. Half of the limits are set from the beginning; the others are set
// while requests run, and then include earlier use and holds (docs/design/usage.md, Limits for models).

import { matchesModel } from "../../src/core/store/budget.ts";
import type { UsageLimits } from "../../src/core/store/ledger.ts";
import type { ModelSubject, OwnLimits } from "../core/store/budget-model.ts";
import type { Chance } from "../faults/chance.ts";
import type { RequestPlan } from "./scenario.ts";

const patterns = ["acme/writer-1", "acme/silent-1", "acme/*"] as const;

/** The model of a request: one model's engines report usage, and the other model's engine never does. */
export const modelIdOf = ({ engine }: Pick<RequestPlan, "engine">): string =>
  engine === "silent" ? "acme/silent-1" : "acme/writer-1";

/** A change of one limit for models; `subject` is a number that selects one of the organization's limits for models. */
export interface ModelsChange {
  kind: "models";
  subject: number;
  /** The new limits; null removes them. */
  limits: UsageLimits | null;
}

export function modelsChangeOf(chance: Chance, limits: UsageLimits): ModelsChange {
  return { kind: "models", subject: chance.below(64), limits: chance.next() < 0.9 ? limits : null };
}

export interface ModelLimits {
  parent: string;
  subject: ModelSubject["subject"];
  pattern: string;
}

const between = " for ";
export const idOfModels = ({ parent, pattern }: ModelLimits) => `${parent}${between}${pattern}`;
/** The id of the subject that has the limits for models; of any other id, the id itself. */
export const parentOf = (id: string): string => id.split(between)[0]!;
export const isForModels = (id: string): boolean => id.includes(between);

/** The limits for models that an organization has at some time in the history, each with its first values. */
export function beganModels(
  chance: Chance,
  parents: readonly Omit<ModelLimits, "pattern">[],
  limitsOf: (chance: Chance) => UsageLimits,
): (ModelLimits & { limits: UsageLimits })[] {
  const all = parents.flatMap((one) => patterns.map((pattern) => ({ ...one, pattern })));
  const chosen = all.filter(() => chance.next() < 0.25);
  return chosen.map((one) => ({ ...one, limits: chance.next() < 0.5 ? limitsOf(chance) : unlimited }));
}

export function changedModels(now: OwnLimits, subjects: readonly ModelSubject[], change: ModelsChange): OwnLimits {
  const all = subjects.filter(({ models }) => models !== undefined);
  const one = all[change.subject % Math.max(1, all.length)];
  return one ? { ...now, limits: new Map(now.limits).set(one.id, change.limits ?? unlimited) } : now;
}

/** The limits for models that count for a request for this model; `parents` are all subjects of the request. */
export function modelsOf(all: readonly ModelSubject[], parents: readonly string[], model: string): ModelSubject[] {
  return all.filter(({ id, models = "" }) => parents.includes(parentOf(id)) && matchesModel(models, model));
}

const unlimited: UsageLimits = { session: null, week: null, month: null, concurrentRequests: null };
