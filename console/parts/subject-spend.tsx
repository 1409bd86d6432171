/** The spend of the page's subject over thirty days, with a link to the same report on the page Usage. */
import { useState } from "preact/hooks";
import { rangeOf } from "../core/range.ts";
import type { Subject } from "../core/spend.ts";
import { daysAfter, Zone } from "../core/zone.ts";
import { readersZone } from "./range-picker.tsx";
import { Section } from "./section.tsx";
import { type Narrowed, SpendChart } from "./spend-chart.tsx";

const days = 30;

/** Shows the spend of the subject that `of` names by its slug or ID: `{ team: "team_…" }`. */
export function SubjectSpend({ of, by = "model" }: { of: Narrowed; by?: Subject }) {
  const [now_ms] = useState(Date.now);
  const named = new Zone(readersZone());
  const zone = named.hasFullHours(now_ms - days * 86_400_000, now_ms) ? named : new Zone("UTC");
  const today = zone.dateOf(now_ms);
  const [from, to] = [daysAfter(today, 1 - days), daysAfter(today, 1)];
  const address = `/usage?${new URLSearchParams({ ...of, by, from, to })}`;
  return (
    <Section title={`Spend in ${days} days`} aside={<a href={address}>In usage</a>}>
      <SpendChart of={of} by={by} range={rangeOf({ from, to, zone, now_ms })} now_ms={now_ms} />
    </Section>
  );
}
