/** Limits as fields of a form, and in words: money for windows, whole numbers for the others. Pure. */
import type { Answer } from "./client.ts";
import { quoted } from "./command-line.ts";
import { type Field, type LimitName, limitLabels, limitNames, moneyTyped } from "./form.ts";
import { grouped } from "./format.ts";
import { moneyWritten } from "./money.ts";

export type Limits = Answer<"findTeamLimits">;
export type Value = Limits["own"];
type Amount = Value[LimitName];

/** A form field `prefix.name` for each limit. Empty means that nothing is set here, so the inherited limit applies. */
export function valueFields(prefix: string, value: Value | null): Field[] {
  return limitNames.map((name) => ({
    name: `${prefix}.${name}`,
    label: limitLabels[name].label,
    kind: limitLabels[name].isMoney ? "amount" : "count",
    value: typed(value?.[name] ?? null),
  }));
}

function typed(limit: Amount): string | number | null {
  return typeof limit === "object" && limit !== null ? moneyTyped(limit) : limit;
}

/** A limit in words: `$50.00`, `60` or `none`. */
export function amountWords(limit: Amount): string {
  if (limit === null) return "–";
  if (limit === "none") return limit;
  return typeof limit === "object" ? moneyWritten(limit) : grouped(limit);
}

/** Limits as the command takes them: `month=50 session=none`. A placeholder if nothing is filled in yet. */
export function typedLimits(value: Record<string, unknown> | null | undefined): string {
  const given = Object.entries(value ?? {}).map(([name, limit]) => quoted(`${name}=${limit ?? "inherit"}`));
  return given.length > 0 ? given.join(" ") : "LIMIT=AMOUNT";
}
