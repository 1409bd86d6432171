/** A change of limits as an administrator gives it, and the rules for such changes. Pure. */

import Type from "typebox";
import type { Currency } from "../../core/inference/money.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { snakeName, type Value } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { not_limited, raisedTo } from "../../core/store/rates.ts";
import { budgetNames, noBudget } from "../store/budget.ts";
import type { LimitsChange, NewRaise, Raise, SubjectLimits } from "../store/limits.ts";
import { fail } from "./error.ts";
import { type LimitValueChanges, limitInWords, limitValueChanges, valueAfter, valueShown } from "./limit-shape.ts";
import { knownPattern } from "./model-patterns.ts";
import * as parse from "./parse.ts";
import { modelPattern, moment, words } from "./shapes.ts";

const day_ms = 86_400_000;
const raise_max_days = 366;
const patterns_max = 8;

/** The members of the input of a change of limits. A member that is left out stays as it is. */
export const limitChanges = {
  own: Type.Optional(nullable(limitValueChanges("What the subject itself can use. Null takes all of it away."))),
  keys: Type.Optional(
    nullable(limitValueChanges("What keys get that have nothing of their own; of organizations and teams.")),
  ),
  members: Type.Optional(
    nullable(limitValueChanges("What people get who have nothing of their own; of organizations and teams.")),
  ),
  models: Type.Optional(
    Type.Record(Type.String(), nullable(limitValueChanges("Null takes the pattern away.")), {
      description: "Limits for models: by the ID of a model, or by `prefix/*`; 8 at most.",
      propertyNames: modelPattern,
    }),
  ),
  raise: Type.Optional(
    nullable(
      Type.Object(
        {
          models: Type.Optional(nullable(words("The pattern of models whose limits are increased; else all models."))),
          limits: Type.Optional(
            nullable(
              limitValueChanges("The limits in force until then, each above the one below it. Null ends the increase."),
            ),
          ),
          until: Type.Optional(nullable(moment("When it ends: ISO 8601 with a time zone, or a date in UTC."))),
        },
        {
          description: "A temporary increase: the limits in force until an instant. Null ends all of them.",
          additionalProperties: false,
        },
      ),
    ),
  ),
};

const LimitChanges = Type.Object(limitChanges);
export type LimitChanges = Value<typeof LimitChanges>;
type RaiseChange = NonNullable<LimitChanges["raise"]>;

interface LimitContext {
  currency: Currency;
  now_ms: number;
  /** IDs and aliases of models. */
  models: readonly string[];
}

/**
 * The new values: the current values `now` with the changes applied. Refuses a limit of a team, key or person above the
 * limit of `organization`.
 */
export function changeOf(
  changes: LimitChanges,
  now: SubjectLimits,
  organization: SubjectLimits,
  known: LimitContext,
): LimitsChange {
  const { currency } = known;
  const whose = now.subject === "organization" ? null : now.subject;
  const within = (value: Budget, words: string) =>
    whose === null && words === "organization"
      ? value
      : withinOrganization(value, organization, words, wordsIn(currency));
  const isLimited = changes.own !== undefined || changes.models !== undefined;
  if (isLimited && changes.raise !== undefined)
    fail("Set the limits first, and then increase them with another request.");
  const to: LimitsChange = {};
  if (changes.own !== undefined) to.own = within(valueAfter(changes.own, now.own, currency), now.subject);
  if (changes.keys !== undefined) to.keys = within(valueAfter(changes.keys, givenBy(now, "keys"), currency), "keys");
  if (changes.members !== undefined)
    to.members = within(valueAfter(changes.members, givenBy(now, "members"), currency), "members");
  if (changes.models !== undefined) {
    const models = modelsAfter(changes.models, now.models, known);
    for (const value of models.values()) within(value, now.subject);
    to.models = models;
  }
  if (changes.raise !== undefined) to.raises = raisesAfter(changes.raise, now, organization, known);
  return to;
}

function givenBy(now: SubjectLimits, kind: "keys" | "members"): Budget {
  if (now.subject === "organization" || now.subject === "team") return now[kind];
  return fail(`A ${now.subject} has no '${kind}': these are what an organization or a team gives.`);
}

export const wordsIn = (currency: Currency) => (limit: keyof Budget, amount: number) =>
  limitInWords(limit, amount, currency);

/** Refuses a limit above the organization's. Such a limit would never take effect, so it is probably a mistake. */
export function withinOrganization(
  value: Budget,
  { inForce, name }: Pick<SubjectLimits, "inForce" | "name">,
  whose: string,
  inWords: (limit: keyof Budget, amount: number) => string,
): Budget {
  for (const limit of budgetNames) {
    const [wanted, most] = [value[limit], inForce[limit]];
    if (wanted === null || wanted === not_limited || most === null || wanted <= most) continue;
    const words = (amount: number) => inWords(limit, amount);
    fail(
      `The limit '${snakeName(limit)}' of ${words(wanted)} for the ${whose} is above that of the organization '${name}', ${words(most)}. Choose a lower one.`,
    );
  }
  return value;
}

function modelsAfter(
  changes: Record<string, LimitValueChanges | null>,
  before: ReadonlyMap<string, Budget>,
  { currency, models }: LimitContext,
): Map<string, Budget> {
  const after = new Map(before);
  for (const [pattern, change] of Object.entries(changes)) {
    const value = change && valueAfter(change, before.get(pattern) ?? noBudget, currency);
    if (value && Object.values(value).some((limit) => limit !== null)) after.set(knownPattern(pattern, models), value);
    else after.delete(pattern);
  }
  if (after.size > patterns_max)
    fail(`There can be limits for ${patterns_max} patterns of models, and these are ${after.size}.`);
  refuseOverlap([...after.keys()].filter((pattern) => pattern.endsWith("/*")));
  return after;
}

/**
 * Refuses prefixes that overlap, so that of a subject's patterns at most two match a model: the model's name itself,
 * and one prefix.
 */
function refuseOverlap(prefixes: readonly string[]): void {
  for (const [at, one] of prefixes.entries())
    for (const other of prefixes.slice(at + 1)) {
      const [short, long] = one.length < other.length ? [one, other] : [other, one];
      if (long.startsWith(short.slice(0, -1)))
        fail(`The patterns '${short}' and '${long}' overlap. Of two such prefixes a subject can have one.`);
    }
}

function raisesAfter(
  change: RaiseChange | null,
  now: SubjectLimits,
  organization: SubjectLimits,
  known: LimitContext,
): readonly NewRaise[] {
  const models = change?.models ?? "";
  const others = change === null ? [] : now.raises.filter((one) => one.models !== models);
  if (change?.limits != null)
    return [...others, raiseOf({ ...change, models, limits: change.limits }, now, organization, known)];
  if (change && (change.limits === undefined || change.until != null))
    fail("Specify the limits to increase, such as week=20. To end a temporary increase, give no instant.");
  // Ending an increase that has already ended changes nothing. Two inputs are mistakes that would leave the increase in
  // force, so they are refused: a pattern that has no limits, and no pattern if every increase has a pattern.
  const isThere = others.length < now.raises.length;
  const isRepeat = models === "" ? now.raises.length === 0 : now.models.has(models);
  if (models === "" && !isThere && !isRepeat)
    fail(`The temporary increase is for '${now.raises[0]!.models}'. Name that in 'models'.`, "wrong_state");
  if (!isThere && !isRepeat)
    fail(
      `This ${now.subject} has no limits for '${parse.excerpt(models)}', so there is nothing to end.`,
      "wrong_state",
    );
  return others;
}

function raiseOf(
  { models, limits: changes, until }: RaiseChange & { models: string; limits: LimitValueChanges },
  now: SubjectLimits,
  organization: SubjectLimits,
  { currency, now_ms }: LimitContext,
): NewRaise {
  const limits = valueAfter(changes, noBudget, currency);
  const named = budgetNames.filter((name) => limits[name] !== null);
  if (named.length === 0) fail("Specify the limits to increase, such as week=20.");
  if (until == null)
    return fail("A temporary increase needs an instant at which it ends. Without one, change the limits themselves.");
  const below = models === "" ? now.inForce : now.models.get(models);
  if (!below)
    fail(`This ${now.subject} has no limits for '${parse.excerpt(models)}', so there is nothing to increase.`);
  for (const name of named) refuseLower(name, limits[name]!, below[name] || null, now.subject, currency);
  if (now.subject !== "organization") {
    const raise = organization.raises.find((one: Raise) => one.models === "");
    const most = Object.fromEntries(
      budgetNames.map((name) => [name, raisedTo(organization.inForce[name], raise?.limits[name])]),
    ) as unknown as Budget;
    withinOrganization(limits, { ...organization, inForce: most }, now.subject, wordsIn(currency));
  }
  if (until.getTime() <= now_ms)
    fail(`${until.toISOString()} is in the past. A temporary increase ends in the future.`);
  if (until.getTime() > now_ms + raise_max_days * day_ms)
    fail(`A temporary increase ends within ${raise_max_days} days. For longer, change the limits themselves.`);
  return { models, limits, until };
}

/**
 * Raises one limit for a time. Limits that are already raised for the same models become part of the same raise,
 * because a raise has one end for all its limits. Refuses to lower a raise of the same limit, or to end it earlier.
 */
export function raisedBeside(
  { limit, models, granted, until }: { limit: keyof Budget; models: string; granted: number; until: Date },
  now: SubjectLimits,
  organization: SubjectLimits,
  known: LimitContext,
): LimitsChange {
  const before = now.raises.find((one) => one.models === models);
  const below = models === "" ? now.inForce : now.models.get(models);
  // A limit that has meanwhile been set above its raise no longer needs the raise.
  const raisedNow = (name: keyof Budget) => {
    const amount = before?.limits[name] ?? 0;
    return amount > ((below?.[name] || null) ?? Number.POSITIVE_INFINITY) ? amount : null;
  };
  const raise = raisedNow(limit);
  if (before && raise !== null && (granted <= raise || until < before.until))
    fail(
      `The ${now.subject}'s limit '${snakeName(limit)}' is increased to ${limitInWords(limit, raise, known.currency)} until ${before.until.toISOString()} already. Approve more than that, until then or later.`,
      "wrong_state",
    );
  const others = Object.fromEntries(budgetNames.map((name) => [name, raisedNow(name)])) as unknown as Budget;
  const one = valueShown({ ...noBudget, [limit]: granted }, known.currency);
  const { raises = [] } = changeOf({ raise: { models, limits: one, until } }, now, organization, known);
  // Only this limit is checked against the rules of a raise: the others were checked when they were raised.
  return {
    raises: raises.map((to) => (to.models === models ? { ...to, limits: { ...others, [limit]: granted } } : to)),
  };
}

function refuseLower(name: keyof Budget, raise: number, limit: number | null, whose: string, currency: Currency): void {
  const words = (amount: number) => limitInWords(name, amount, currency);
  if (limit === null) fail(`The ${whose} has no limit '${snakeName(name)}', so there is nothing to increase.`);
  if (raise === not_limited)
    fail(`A temporary increase of '${snakeName(name)}' needs a number above ${words(limit)}, and not 'none'.`);
  if (raise <= limit)
    fail(
      `The ${whose}'s limit '${snakeName(name)}' is ${words(limit)} already, and ${words(raise)} is not above it. A temporary increase never lowers.`,
    );
}
