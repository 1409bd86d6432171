/**
 * Limits as verbs of management take and return them (docs/limits.md): money for the limits of usage windows, whole
 * numbers for all other limits.
 */

import Type from "typebox";
import { type Currency, grouped, moneyInWords, moneyOf } from "../../core/inference/money.ts";
import { Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { camelName, snakeName, type Value } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { nanos_max } from "../../core/store/ledger.ts";
import { not_limited } from "../../core/store/rates.ts";
import { limit_nanos_max, typedNanos } from "../store/amounts.ts";
import { budgetNames, noBudget } from "../store/budget.ts";
import type { SubjectLimits } from "../store/limits.ts";
import { id, instant, type LimitName, limitNames } from "../store/shapes.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { namesOf, unmatchedPatterns } from "./model-patterns.ts";
import { Standing, standing, standingShown } from "./standing.ts";

const nano_decimals = 9;
const windows: readonly string[] = ["session", "week", "month"];
export const isWindow = (name: string) => windows.includes(name);

const none = Type.Literal("none");
/**
 * The members of an object of all six limits: the limits of usage windows with the schema `window`, the rest with the
 * schema `other`.
 */
function eachAmount<Windows extends Type.TSchema, Others extends Type.TSchema>(
  window: () => Windows,
  other: () => Others,
) {
  return {
    session: window(),
    week: window(),
    month: window(),
    requests_per_minute: other(),
    tokens_per_minute: other(),
    concurrent_requests: other(),
  } satisfies Record<LimitName, Type.TSchema>;
}

export const LimitValue = Type.Object(
  eachAmount(
    () => Type.Union([Money, none, Type.Null()]),
    () => Type.Union([Type.Integer({ minimum: 1 }), none, Type.Null()]),
  ),
  {
    $id: "LimitValue",
    description: "Null: says nothing, so it is inherited. `none`: not limited, whatever is inherited.",
  },
);
export type LimitValue = Value<typeof LimitValue>;

/** The form that `typedNanos` reads: `50`, `0.25`, `50USD`, `50 usd`, or `none`. */
const typedForm = "^[0-9]{1,16}([.][0-9]{1,16})? ?[A-Za-z]{0,16}$|^none$";
const MoneySent = Type.Object(
  {
    amount: Type.String({ pattern: "^[0-9]{1,16}([.][0-9]{1,16})?$" }),
    currency: Type.String({ pattern: "^[A-Za-z]{1,16}$" }),
  },
  { additionalProperties: false },
);

/** The schema of a change of limits: a limit that is left out stays as it is. */
export const limitValueChanges = (description: string) =>
  Type.Object(
    eachAmount(
      () =>
        Type.Optional(
          Type.Union([Type.String({ pattern: typedForm }), Type.Number(), MoneySent, Type.Null()], {
            description: 'Decimal text such as "50" or "50USD", `none`, or null to say nothing.',
            "x-must-be": 'an amount such as "50" or "0.25", none, or null',
          }),
        ),
      () =>
        Type.Optional(
          Type.Union([Type.Integer({ minimum: 1, maximum: nanos_max }), none, Type.Null()], {
            description: "A whole number, `none`, or null to say nothing.",
            "x-must-be": "a whole number from 1, none, or null",
          }),
        ),
    ),
    { description, propertyNames: oneOf(limitNames) },
  );
export type LimitValueChanges = Value<ReturnType<typeof limitValueChanges>>;

const LimitInForce = <Limit extends Type.TSchema>(limit: Limit) =>
  Type.Object({
    limit,
    from: nullable(
      oneOf(["own", "team", "organization", "plan", "raise"], {
        description: "`team` and `organization`: what these give to their keys or people.",
      }),
    ),
  });

export const LimitsInForce = Type.Object(
  eachAmount(
    () => LimitInForce(nullable(Money)),
    () => LimitInForce(nullable(Type.Integer({ minimum: 1 }))),
  ),
  { $id: "LimitsInForce", description: "Each limit that counts now, and where it comes from. Null: not limited." },
);

export const Raise = Type.Object(
  {
    models: nullable(Type.String({ description: "The models that it is for. Null: all." })),
    limits: LimitValue,
    until: instant("From here on the limits below count again."),
    set_at: instant("When it was set."),
    set_by: Type.String({ description: "The actor." }),
  },
  { $id: "Raise", description: "A temporary increase: the limits in force until an instant." },
);

const fields = {
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug." }),
  subject: oneOf(["organization", "team", "person", "key"]),
  subject_id: Type.String({ description: "Its ID." }),
  name: nullable(Type.String()),
  own: LimitValue,
  keys: nullable(LimitValue),
  members: nullable(LimitValue),
  models: Type.Record(Type.String(), LimitValue, { description: "Its own, by patterns of models." }),
  raises: Type.Array(Raise, { description: "The temporary increases in force." }),
  in_force: LimitsInForce,
  standing: standing(),
  model_standings: Type.Record(Type.String(), Standing, {
    description: "How much of its own limits for models is used, by their patterns.",
  }),
  unmatched_models: Type.Record(Type.String(), nullable(Type.String()), {
    description:
      "Its own patterns that match no model of the catalog today: their limits wait for one. Each with the pattern that was perhaps meant.",
  }),
  version: Type.Integer({ minimum: 1, description: "That of the subject; also sent as `etag`." }),
};

export const SubjectLimitsShape = Type.Object(fields, {
  $id: "SubjectLimits",
  description: "`keys` and `members`: what those get that have nothing of their own; null for people and keys.",
});
export type SubjectLimitsShown = Value<typeof SubjectLimitsShape>;

export const OrganizationLimits = Type.Object(
  {
    ...fields,
    data: Type.Array(SubjectLimitsShape, { description: "The keys, teams or people that `of` asks for." }),
    next_cursor: nullable(Type.String({ description: "Null: this was the last page." })),
  },
  { $id: "OrganizationLimits" },
);

/** Converts limits from nanos and whole numbers to the form in which verbs return them. */
export function valueShown(value: Budget, currency: Currency): LimitValue {
  const amounts = budgetNames.map((name) => [name, amountShown(name, value[name], currency)]);
  return Object.fromEntries(amounts) as LimitValue;
}

function amountShown(name: keyof Budget, limit: number | null, currency: Currency) {
  if (limit === not_limited) return "none";
  return limit !== null && isWindow(name) ? moneyOf(limit, currency) : limit;
}

/** The limits after a change: the limits that it names are set; null removes all limits. */
export function valueAfter(changes: LimitValueChanges | null, before: Budget, currency: Currency): Budget {
  if (changes === null) return noBudget;
  const value = { ...before };
  for (const name of budgetNames) {
    const given = changes[name];
    if (given !== undefined)
      value[name] = given === null ? null : given === "none" ? not_limited : amountOf(name, given, currency);
  }
  return value;
}

/** The limits of a thing that is being created. */
export const newValue = (changes: LimitValueChanges | null | undefined, currency: Currency): Budget =>
  valueAfter(changes ?? {}, noBudget, currency);

type Amount = string | number | Value<typeof Money>;

function amountOf(name: keyof Budget, given: Amount, currency: Currency): number {
  if (!isWindow(name)) return given as number;
  const text = typeof given === "object" ? `${given.amount}${given.currency}` : decimalText(given);
  const typed = typedNanos(text, currency);
  const problem = "problem" in typed ? typed.problem : outOfRange(typed.nanos, currency);
  if (problem !== null) fail(`The limit '${snakeName(name)}' ${problem}.`);
  return (typed as { nanos: number }).nanos;
}

/** The schema of one limit that a caller sends: money for a usage window, else a whole number. */
export const sentAmount = (description: string) =>
  Type.Union([Type.String({ pattern: "^[0-9]{1,16}([.][0-9]{1,16})? ?[A-Za-z]{0,16}$" }), Type.Number()], {
    description,
    "x-must-be": 'an amount such as "50" or "0.25"',
  });

/**
 * A limit that a caller sent, in the unit in which it counts: nanos, or a whole number. Throws if the limit of this
 * name cannot have the amount.
 */
export function sentIn(name: keyof Budget, given: string | number, currency: Currency): number {
  if (isWindow(name)) return amountOf(name, given, currency);
  const whole = Number(given);
  if (Number.isSafeInteger(whole) && whole > 0) return whole;
  return fail(`The limit '${snakeName(name)}' is a whole number from 1.`);
}

/** The schema of the amount of one limit, as verbs return it. */
export const oneAmount = (description: string) => Type.Union([Money, Type.Integer({ minimum: 1 })], { description });
export const amountOut = (name: keyof Budget, amount: number, currency: Currency) =>
  isWindow(name) ? moneyOf(amount, currency) : amount;

/** The decimal text of a number, without an exponent: JavaScript writes small numbers as `1e-7`. */
export function decimalText(amount: string | number): string {
  if (typeof amount === "string") return amount;
  const fixed = amount.toFixed(nano_decimals);
  return Number(fixed) === amount ? fixed : String(amount);
}

function outOfRange(nanos: number, currency: Currency): string | null {
  if (nanos >= 1 && nanos <= limit_nanos_max) return null;
  return `must be more than 0 and at most ${moneyInWords(limit_nanos_max, currency)}; for no limit, say none`;
}

/** The limit in words: `$50.00`, or `60`. */
export function limitInWords(name: keyof Budget, limit: number, currency: Currency): string {
  return isWindow(name) ? moneyInWords(limit, currency) : grouped(limit);
}

/** The limits in words: `month $50.00, requests_per_minute 60`; null: none is set. */
export function valueInWords(value: LimitValue | null): string | null {
  const said = limitNames.flatMap((name) => {
    const limit = value?.[camelName(name) as keyof LimitValue] ?? null;
    return limit === null ? [] : [`${name} ${typeof limit === "object" ? moneyWritten(limit) : amountWritten(limit)}`];
  });
  return said.join(", ") || null;
}

/** The amount in words: `$50.00`, or `60`. */
export const limitAmountWritten = (amount: Value<typeof Money> | number) =>
  typeof amount === "number" ? grouped(amount) : moneyWritten(amount);

const amountWritten = (limit: number | "none") => (limit === "none" ? limit : grouped(limit));

export function moneyWritten({ amount, currency }: Value<typeof Money>): string {
  const typed = typedNanos(amount, currency);
  return "nanos" in typed ? moneyInWords(typed.nanos, currency) : amount;
}

export async function limitsShown(
  { standings, currency: used, catalog }: Pick<ManagementContext, "standings" | "currency" | "catalog">,
  all: readonly SubjectLimits[],
  organization: string,
): Promise<SubjectLimitsShown[]> {
  const currency = await used();
  const served = all.some(({ models }) => models.size > 0) ? namesOf(await catalog()) : [];
  const found = await standings.standings(
    all.flatMap(({ countedId, countedModels }) => [countedId, ...countedModels.values()]),
  );
  return all.map((one) => {
    const hasOthers = one.subject === "organization" || one.subject === "team";
    const known = found.get(one.countedId);
    return {
      organizationId: one.organizationId,
      organization,
      subject: one.subject,
      subjectId: one.id,
      name: one.name,
      own: valueShown(one.own, currency),
      keys: hasOthers ? valueShown(one.keys, currency) : null,
      members: hasOthers ? valueShown(one.members, currency) : null,
      models: Object.fromEntries([...one.models].map(([pattern, value]) => [pattern, valueShown(value, currency)])),
      raises: one.raises.map(({ models, limits, ...raise }) => ({
        ...raise,
        models: models || null,
        limits: valueShown(limits, currency),
      })),
      inForce: inForceShown(one, currency),
      standing: known ? standingShown(known, currency) : null,
      modelStandings: Object.fromEntries(
        [...one.countedModels].flatMap(([pattern, id]) => {
          const used = found.get(id);
          return used ? [[pattern, standingShown(used, currency)]] : [];
        }),
      ),
      unmatchedModels: unmatchedPatterns(one.models.keys(), served),
      version: one.version,
    };
  });
}

function inForceShown({ inForce, origins, raises }: SubjectLimits, currency: Currency) {
  const raise = raises.find(({ models }) => models === "");
  const listed = budgetNames.map((name) => {
    const [base, raised] = [inForce[name], raise?.limits[name] ?? null];
    const isRaised = base !== null && raised !== null && raised > base;
    const limit = amountShown(name, isRaised ? raised : base, currency);
    return [name, { limit, from: isRaised ? "raise" : origins[name] }];
  });
  return Object.fromEntries(listed) as SubjectLimitsShown["inForce"];
}
