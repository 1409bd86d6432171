/** A raise as verbs answer it and commands print it (docs/design/usage.md, Raises). */
import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { noBudget } from "../../core/store/budget.ts";
import type { Raise as StoredRaise } from "../../core/store/raise.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import type { Column, Facts } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { limitsInWords } from "./limits.ts";
import { examples, instant, Limits, nullable } from "./shapes.ts";

export const Raise = Type.Object(
  {
    limits: Limits,
    until: instant("From here on the limits below count again."),
    set_at: instant("When it was set."),
    set_by: Type.String({ description: "The actor." }),
  },
  {
    $id: "Raise",
    description: "Limits that count until an instant, where they are above the others. Null: not raised.",
  },
);
export type Raise = Value<typeof Raise>;

/** The member `raise` of an organization, a team, a person or a key. Null: nothing is raised now. */
export const raiseNow = () => nullable(Raise);

export const exampleRaise: Raise = {
  limits: { ...noBudget, week: 3_000_000_000 },
  until: examples.at,
  setAt: examples.at,
  setBy: "operator:ann",
};

/** Adds to each thing the raise that is in force. */
export async function withRaises<One extends { id: string }>(
  { administration }: Pick<ManagementContext, "administration">,
  all: readonly One[],
): Promise<(One & { raise: StoredRaise | null })[]> {
  const found = await administration.raises(all.map(({ id }) => id));
  return all.map((one) => ({ ...one, raise: found.get(one.id) ?? null }));
}

export function raiseFacts(raise: Raise | null): Facts {
  if (!raise) return [];
  return [["raised to", `${limitsInWords(raise.limits)}, until ${instantWritten(raise.until)} (${raise.setBy})`]];
}

/** When the raise ends, in a list. */
export const raiseColumn: Column<{ raise: Raise | null }> = {
  head: "RAISED UNTIL",
  optional: true,
  cell: ({ raise }) => instantWritten(raise?.until ?? null) ?? "",
};
