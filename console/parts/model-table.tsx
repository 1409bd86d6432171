/** The models that the answering node serves: what each is for, and what its requests cost. */
import type { Answer } from "../core/client.ts";
import { grouped } from "../core/format.ts";
import { moneyWritten } from "../core/money.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { CommandLine } from "./command-line.tsx";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";

export type Model = Answer<"showConfiguration">["models"][number];

export function Models() {
  const asked = useAnswer("showConfiguration", may("showConfiguration") ? {} : null);
  if (!may("showConfiguration")) return null;
  return (
    <Section title="Models" aside="nanos a token, and a search of up to 100 documents">
      <Show of={asked}>
        {({ models }) => (
          <Table
            caption="Models"
            rows={models}
            keyOf={({ id }) => id}
            columns={[
              { head: "Model", cell: ({ id }) => <code>{id}</code> },
              { head: "Kind", cell: ({ kind }) => kind },
              { head: "Context", isNumber: true, cell: ({ context_tokens }) => grouped(context_tokens) },
              { head: "Prices", cell: pricesOf },
            ]}
          />
        )}
      </Show>
      <CommandLine verb="showConfiguration" />
    </Section>
  );
}

/** The prices of a million tokens that a model of this kind has. */
function pricesOf({ kind, prices }: Model): string {
  const { input, cached_input, output, search } = prices;
  const makesText = kind === "chat" || kind === "completion";
  return [
    `${moneyWritten(input)} in`,
    cached_input.amount !== input.amount && `${moneyWritten(cached_input)} cached`,
    makesText && `${moneyWritten(output)} out`,
    search && Number(search.amount) > 0 && `${moneyWritten(search)} for a thousand searches`,
  ]
    .filter(Boolean)
    .join(", ");
}
