/** Limits in a few words. */
import { limitNames } from "../core/form.ts";
import { compacted, wordsOf } from "../core/format.ts";

type Limits = Record<(typeof limitNames)[number], number | null> | null;

export function LimitWords({ of, none = "none of its own" }: { of: Limits; none?: string }) {
  const set = limitNames.filter((name) => of?.[name] != null);
  if (set.length === 0) return <span class="fine">{none}</span>;
  return <>{set.map((name) => `${wordsOf(name)} ${written(name, of![name]!)}`).join(", ")}</>;
}

/** A window's limit is kept in billionths of the currency. */
const written = (name: (typeof limitNames)[number], limit: number) =>
  name === "session" || name === "week" || name === "month" ? String(limit / 1e9) : compacted(limit);
