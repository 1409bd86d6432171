/** Limits in a few words. */
import { limitNames } from "../core/form.ts";
import { compacted, wordsOf } from "../core/format.ts";

export function LimitWords({ of }: { of: Record<(typeof limitNames)[number], number | null> | null }) {
  const set = limitNames.filter((name) => of?.[name] != null);
  if (set.length === 0) return <span class="fine">none of its own</span>;
  return <>{set.map((name) => `${wordsOf(name)} ${compacted(of![name]!)}`).join(", ")}</>;
}
