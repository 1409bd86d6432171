/** Requests, newest first. */
import type { ItemOf } from "../core/client.ts";
import { milliseconds, wordsOf } from "../core/format.ts";
import { isMember } from "../core/session.ts";
import { OrganizationLink, RequestLink, ThingLink, Tokens } from "./links.tsx";
import { List } from "./list.tsx";
import { Money } from "./number.tsx";
import { Section, State } from "./section.tsx";
import { Table } from "./table.tsx";
import type { Tab } from "./tabs.tsx";
import { Time } from "./time.tsx";

type Listed = ItemOf<"pageRequests">;

interface Props {
  input: Record<string, string>;
  /** The columns to leave out, because they have the same value in every row. */
  without?: readonly ("organization" | "person" | "key")[];
  none?: string | undefined;
  /** The most rows, if only the first ones are shown. */
  limit?: number | undefined;
}

/** The tab of a thing's page with the requests of that thing. */
export const requestsTab = (props: Props): Tab => ({
  name: "Requests",
  path: "requests",
  shows: () => (
    <Section title="Requests" aside={<a href={`/requests?${new URLSearchParams(props.input)}`}>With filters</a>}>
      <RequestList {...props} />
    </Section>
  ),
});

export function RequestList({ input, without = [], none, limit }: Props) {
  const has = (name: "organization" | "person" | "key") => !without.includes(name);
  return (
    <List
      verb="pageRequests"
      input={input as never}
      none={none ?? "No request yet. The page Connect has a block to copy for each client."}
      limit={limit}
    >
      {(rows) => (
        <Table<Listed>
          caption="Requests"
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { head: "Request", cell: ({ id }) => <RequestLink id={id} /> },
            { head: "Admitted", cell: ({ created_at }) => <Time at={created_at} /> },
            { head: "Outcome", cell: (one) => <Outcome of={one} /> },
            { head: "Model", cell: ({ model }) => <ModelName of={model} /> },
            has("organization") && {
              head: "Organization",
              isMinor: true,
              cell: (one) => <OrganizationLink slug={one.organization} />,
            },
            {
              head: "Tokens",
              isNumber: true,
              isMinor: true,
              cell: (one) => <Tokens input={inputTokens(one)} output={one.output_tokens} />,
            },
            { head: "Cost", isNumber: true, cell: ({ cost }) => <Money of={cost.charged} /> },
            {
              head: "First token",
              isNumber: true,
              isMinor: true,
              cell: ({ first_part_ms }) => milliseconds(first_part_ms),
            },
            has("person") && !isMember.value && { head: "Person", isMinor: true, cell: personOf },
            has("key") && { head: "Key", isMinor: true, cell: keyOf },
            !isMember.value && {
              head: "Engine",
              isMinor: true,
              cell: ({ upstream, attempts }) => `${upstream ?? "–"}${(attempts ?? 0) > 1 ? ` ×${attempts}` : ""}`,
            },
          ]}
        />
      )}
    </List>
  );
}

const personOf = ({ person_id, person }: Listed) =>
  person_id ? <ThingLink kind="person" id={person_id} name={person} /> : "–";

const keyOf = ({ key_id, key }: Listed) => (key_id ? <ThingLink kind="key" id={key_id} name={key} /> : "–");

/** A model's name, with a possible line break after each slash. */
function ModelName({ of: model }: { of: string | null }) {
  if (model === null) return <>–</>;
  return <span>{model.split("/").flatMap((part, at) => (at === 0 ? [part] : ["/", <wbr key={part} />, part]))}</span>;
}

/** All input tokens, including those read from or written to caches. */
function inputTokens({ input_tokens, cached_input_tokens, cache_write_tokens }: Listed): number {
  return input_tokens + cached_input_tokens + cache_write_tokens;
}

function Outcome({ of: { outcome, error_code, stopped_by } }: { of: Listed }) {
  const why = error_code ?? stopped_by;
  return (
    <span>
      {outcome === "completed" ? outcome : <State of={outcome} />} {why && <span class="fine">{wordsOf(why)}</span>}
    </span>
  );
}
