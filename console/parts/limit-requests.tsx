/** Requests for a higher limit: of an organization, or the reader's own. */

import type { Input } from "../core/client.ts";
import { limitWords } from "../core/form.ts";
import { amountWords } from "../core/limit-fields.ts";
import { type LimitRequest, LimitRequestActs } from "./limit-request-acts.tsx";
import { ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";

interface Props {
  input: Input<"pageLimitRequests">;
  none: string;
  changed?: () => void;
}

export function LimitRequests({ input, none, changed }: Props) {
  return (
    <List verb="pageLimitRequests" input={input} cursor="asked" none={none}>
      {(requests) => (
        <Table<LimitRequest>
          caption="Requests for more"
          rows={requests}
          keyOf={({ id }) => id}
          columns={[
            { head: "Limit", cell: (one) => <a href={`/limit-requests/${one.id}`}>{limitOf(one)}</a> },
            !input.person && {
              head: "Who asks",
              cell: ({ person_id, person }) => <ThingLink kind="person" id={person_id} name={person} />,
            },
            { head: "Was", isNumber: true, cell: ({ value }) => amountWords(value) },
            { head: "Asks for", isNumber: true, cell: ({ asked }) => (asked === null ? "more" : amountWords(asked)) },
            { head: "State", cell: ({ state }) => <RequestState of={state} /> },
            { head: "Asked", isMinor: true, cell: ({ created_at }) => <Distance at={created_at} /> },
            {
              head: "Actions",
              areActs: true,
              cell: (one) => <LimitRequestActs of={one} changed={changed} />,
            },
          ]}
        />
      )}
    </List>
  );
}

/**
 * The state of a request for a higher limit. An open one is shown as waiting, because the colour of `open` is that of a
 * broken engine.
 */
export const RequestState = ({ of }: { of: LimitRequest["state"] }) =>
  of === "open" ? <State of="waiting" words="open" /> : <State of={of} />;

/** The limit in words: `month of team research, for openai/*` */
export function limitOf({ limit, subject, name, models }: LimitRequest): string {
  const whose = subject === "person" ? "person" : `${subject} ${name ?? ""}`.trim();
  return `${limitWords(limit)} of the ${whose}${models ? `, for ${models}` : ""}`;
}
