/**
 * Limits in a file of organizations: the value of `/limits` without raises (temporary increases), as `{ own, keys,
 * members, models }`. They are compared limit by limit, under names such as `own.week` and `models.openai/*.month`.
 * Pure.
 */

import Type from "typebox";
import { nullable, oneOf } from "../../../core/protocol/shapes/contract.ts";
import { camelName, snakeName } from "../../../core/schema/codec.ts";
import type { Budget } from "../../../core/store/budget.ts";
import { not_limited } from "../../../core/store/rates.ts";
import { shortest, wholeOf } from "../../store/amounts.ts";
import { budgetNames, noBudget } from "../../store/budget.ts";
import { type LimitName, limitNames } from "../../store/shapes.ts";
import { decimalText, isWindow, type LimitValue, type SubjectLimitsShown } from "../limit-shape.ts";
import { modelPattern } from "../shapes.ts";
import type { VerbName } from "../verbs.ts";
import type { Call, Field, Values } from "./kind.ts";

/** Limits as the verbs return them. */
export type LimitsNow = Pick<SubjectLimitsShown, "own" | "keys" | "members" | "models">;

const amount = () =>
  Type.Optional(
    Type.Union(
      [Type.Number({ minimum: 0 }), Type.String({ pattern: "^([0-9]{1,16}(\\.[0-9]{1,9})?|none)$" }), Type.Null()],
      {
        "x-must-be": "an amount of the service's currency such as 50 or 0.25, none, or null",
      },
    ),
  );
const whole = () =>
  Type.Optional(
    Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("none"), Type.Null()], {
      "x-must-be": "a whole number from 1, none, or null",
    }),
  );
const value = () =>
  Type.Object(Object.fromEntries(limitNames.map((name) => [name, isWindow(name) ? amount() : whole()])), {
    propertyNames: oneOf(limitNames),
    additionalProperties: false,
  });

const sections = {
  own: Type.Optional(value()),
  keys: Type.Optional(value()),
  members: Type.Optional(value()),
  models: Type.Optional(
    Type.Record(Type.String(), nullable(value()), { maxProperties: 8, propertyNames: modelPattern }),
  ),
};

/**
 * The schema of limits in the file. Organizations and teams also have default limits for their keys and people
 * (`hasDefaults`); keys and people have only limits of their own.
 */
export const limitsEntry = (hasDefaults: boolean) => {
  const { keys: _, members: __, ...own } = sections;
  return Type.Object(hasDefaults ? sections : own, { additionalProperties: false });
};

export type Amount = string | number | null;
/** Limits by their paths, such as `own.week`. */
type Flat = Record<string, Amount>;

/** The limits that have a value, by their paths. */
function flatOf(now: LimitsNow | null): Flat {
  if (now === null) return {};
  const values = [
    ...(["own", "keys", "members"] as const).map((kind) => [kind, now[kind]] as const),
    ...Object.entries(now.models).map(([pattern, one]) => [`models.${pattern}`, one] as const),
  ];
  return Object.fromEntries(
    values.flatMap(([place, one]) =>
      limitNames.flatMap((name): [string, Amount][] => {
        const limit = one?.[camelName(name) as keyof LimitValue] ?? null;
        return limit === null ? [] : [[`${place}.${name}`, typeof limit === "object" ? trimmed(limit.amount) : limit]];
      }),
    ),
  );
}

/** The amount in its shortest form, `50` for `50.000000000`: as a number if that is exact, else as text. */
export function trimmed(amount: string | number): string | number {
  const text = shortest(decimalText(amount));
  return String(Number(text)) === text ? Number(text) : text;
}

type Written = Partial<Record<string, Record<string, unknown> | null>>;

function flattened(written: Written): Flat {
  const { models = {}, ...values } = written as { models?: Written } & Written;
  const all = [
    ...Object.entries(values),
    ...Object.entries(models).map(([pattern, one]) => [`models.${pattern}`, one] as const),
  ];
  return Object.fromEntries(
    all.flatMap(([place, one]) => {
      const given = one ?? Object.fromEntries(limitNames.map((name) => [name, null]));
      return Object.entries(given as Record<string, Amount>).map(([name, limit]): [string, Amount] => [
        `${place}.${name}`,
        isWindow(name) && limit !== null && limit !== "none" ? trimmed(limit) : limit,
      ]);
    }),
  );
}

/** Converts limits by path to the nested form that the file and the verbs have. */
function nested(flat: Flat, amountOf: (name: string, limit: Amount) => Amount): Values {
  const values = new Map<string, Record<string, Amount>>();
  for (const [place, limit] of Object.entries(flat)) {
    const [path, name] = placeAndName(place);
    values.set(path, { ...values.get(path), [name]: amountOf(name, limit) });
  }
  const isModels = ([path]: readonly [string, unknown]) => path.startsWith(ofModels);
  const models = [...values].filter(isModels).map(([path, value]) => [path.slice(ofModels.length), value] as const);
  return {
    ...Object.fromEntries([...values].filter((one) => !isModels(one))),
    ...(models.length > 0 && { models: Object.fromEntries(models) }),
  };
}

const ofModels = "models.";

/** Splits the path of a limit into the path of its group and its name: `["models.openai/gpt-4.1", "week"]`. */
function placeAndName(place: string): [place: string, name: string] {
  const end = place.lastIndexOf(".");
  return [place.slice(0, end), place.slice(end + 1)];
}

export const limitsWritten = (now: LimitsNow | null): Values => nested(flatOf(now), (_, limit) => limit);

/** The current limits with null for each amount: the input that removes them all. */
export const limitsTaken = (now: LimitsNow | null): Values => nested(flatOf(now), () => null);

export function limitsField<Now>(
  verb: VerbName,
  hasDefaults: boolean,
  read: (now: Now) => LimitsNow | null,
  more: Call["input"] = {},
): Field<Now> {
  return {
    schema: limitsEntry(hasDefaults),
    compares: "map",
    read: (now) => flatOf(read(now)),
    written: (now) => limitsWritten(read(now)),
    fresh: {},
    normal: (written) => flattened((written ?? {}) as Written),
    member: null,
    sets: (flat) => ({
      verb,
      input: {
        ...more,
        ...nested(flat as Flat, (name, limit) =>
          isWindow(name) && typeof limit === "number" ? decimalText(limit) : limit,
        ),
      },
    }),
  };
}

/** The limits that a step sets, by the path of their group: `own`, `keys`, `models.openai/*`. */
export function valuesSet(flat: Flat): Map<string, Budget> {
  const values = new Map<string, Budget>();
  for (const [whole, limit] of Object.entries(flat)) {
    const [place, name] = placeAndName(whole);
    values.set(place, { ...noBudget, ...values.get(place), [camelName(name)]: nanosOf(name, limit) });
  }
  return values;
}

/** A limit in the unit in which it is counted: nanos for usage windows, else the number itself. */
export function nanosOf(name: string, limit: Amount): number | null {
  if (limit === null) return null;
  if (limit === "none") return not_limited;
  return isWindow(name) ? wholeOf(decimalText(limit), 9) : Number(limit);
}

/**
 * The limits of an organization after all steps: its own limits in the file, else its current ones, else its plan's.
 */
export function organizationsLimits(
  wanted: Written | undefined,
  now: LimitsNow | null,
  plan: Readonly<Partial<Budget>> | null,
): Budget {
  const flat: Flat = { ...flatOf(now), ...flattened(wanted ?? {}) };
  const limits = budgetNames.map((name) => {
    const own = nanosOf(snakeName(name), flat[`own.${snakeName(name)}` as `own.${LimitName}`] ?? null);
    return [name, own === not_limited ? null : (own ?? plan?.[name] ?? null)];
  });
  return Object.fromEntries(limits) as Budget;
}
