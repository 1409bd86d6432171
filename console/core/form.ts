/** Decides which members of a verb's input a form sends: those that were filled in or changed. Pure. */
import type { Money } from "./money.ts";
import type { MemberEntry } from "./verb-table.ts";

export interface Field {
  /**
   * The name of the member of the input that the field sets. `limits.week` is the member `week` of the member `limits`.
   */
  name: string;
  label: string;
  /**
   * The kind of value. An `amount` is money or the word none, a `count` a whole number or the word none, and `money`
   * decimal text.
   */
  kind: MemberEntry["kind"] | "amount" | "count" | "money";
  hint?: string;
  choices?: readonly (string | readonly [value: string, label: string])[];
  isRequired?: boolean;
  /** Whether the field is sent even if it was not changed. */
  isSent?: boolean;
  /** The placeholder of a field for a number or money, which says what empty means. Absent: `no limit`. */
  none?: string;
  /** A pattern for the field's text, in addition to the pattern of its kind. */
  pattern?: string;
  /** The current value. A field that still has it is not sent. */
  value?: string | number | boolean | readonly string[] | null;
}

/**
 * A field as a page declares it. `completed` adds the facts about this member from the verb's description of its input.
 */
export type WrittenField = Pick<Field, "name"> & Partial<Field>;

/** The fields of a form, completed by the verb's description of its input. */
export function completed(fields: readonly WrittenField[], members: Record<string, MemberEntry>): Field[] {
  return fields.map((field) => {
    const { kind = "text", choices = [], isRequired = false, pattern } = members[field.name] ?? {};
    const words = field.name.replaceAll("_", " ");
    const label = words.charAt(0).toUpperCase() + words.slice(1);
    return { label, kind, isRequired, ...(choices.length > 0 && { choices }), ...(pattern && { pattern }), ...field };
  });
}

export type Values = Record<string, string | boolean>;

export function valuesOf(fields: readonly Field[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, written(field)]));
}

function written({ kind, value }: Field): string | boolean {
  if (kind === "flag") return value === true;
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** The pattern that the whole text of a field must match, by kind. */
export const patterns: Partial<Record<Field["kind"], string>> = {
  number: "[0-9][0-9 ,_]*",
  signed: "[\\-−]?[0-9][0-9 ,_]*",
  amount: "[0-9]+([.][0-9]{1,9})? ?([A-Za-z]{3,})?|none",
  count: "[0-9]+|none",
  money: "[0-9]+([.][0-9]{1,9})?",
};

/**
 * Whether the text in a field is a valid value already. The command is shown without the fields that are not valid yet.
 */
export function isComplete({ kind, pattern }: Field, value: string | boolean): boolean {
  if (typeof value === "boolean" || value.trim() === "") return true;
  return [patterns[kind], pattern].every((one) => one === undefined || new RegExp(`^(${one})$`).test(value.trim()));
}

export function inputOf(
  fields: readonly Field[],
  values: Values,
  given: Record<string, unknown>,
): Record<string, unknown> {
  const input: Record<string, unknown> = { ...given };
  for (const field of fields) {
    const value = values[field.name] ?? "";
    if (value === written(field) && !field.isRequired && !field.isSent) continue;
    put(input, field.name.split("."), meant(field, value));
  }
  return input;
}

/** The value that a text stands for: null if the field was emptied. */
function meant({ kind }: Field, value: string | boolean): unknown {
  if (typeof value === "boolean") return value;
  const text = value.trim();
  if (text === "") return null;
  if (kind === "number" || kind === "signed") return Number(text.replaceAll(/[\s,_]/g, "").replace("−", "-"));
  if (kind === "count" && text !== "none") return Number(text);
  if (kind === "list") return text.split(/[\s,]+/).filter((one) => one !== "");
  return text;
}

function put(input: Record<string, unknown>, [name = "", ...rest]: string[], value: unknown): void {
  if (rest.length === 0) input[name] = value;
  else {
    const inner = { ...(input[name] as Record<string, unknown> | undefined) };
    put(inner, rest, value);
    input[name] = inner;
  }
}

/** The limits of a plan, as fields. */
export function limitFields(limits: Partial<Record<LimitName, Money | number | null>> | null): Field[] {
  return limitNames.map((name) => {
    const limit = limits?.[name] ?? null;
    return {
      name,
      label: limitLabels[name].label,
      kind: limitLabels[name].isMoney ? "money" : "number",
      value: typeof limit === "object" ? limit && moneyTyped(limit) : limit,
    };
  });
}

/** An amount as one would type it: `50` for `50.000000000`. */
export const moneyTyped = ({ amount }: Pick<Money, "amount">) => amount.replace(/[.]?0+$/, "");

/** The names of a limit. `words` is the one that stands in the head of a column. */
interface LimitLabel {
  label: string;
  words: string;
  isMoney: boolean;
}

export const limitLabels = {
  session: { label: "Money in a session of 5 hours", words: "5-hour session", isMoney: true },
  week: { label: "Money in a week", words: "week", isMoney: true },
  month: { label: "Money in a month", words: "month", isMoney: true },
  requests_per_minute: { label: "Requests in a minute", words: "requests per minute", isMoney: false },
  tokens_per_minute: { label: "Tokens in a minute", words: "tokens per minute", isMoney: false },
  concurrent_requests: { label: "Requests at once", words: "concurrent requests", isMoney: false },
} as const satisfies Record<string, LimitLabel>;
export type LimitName = keyof typeof limitLabels;
export const limitNames = Object.keys(limitLabels) as LimitName[];
/** A limit's name in words: `5-hour session`, `requests per minute`. */
export const limitWords = (name: LimitName) => limitLabels[name].words;
