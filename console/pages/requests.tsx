/** Requests, newest first. The filters stand in the address. */
import type { ItemOf } from "../core/client.ts";
import { milliseconds, wordsOf } from "../core/format.ts";
import { membership } from "../core/session.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { OrganizationLink, RequestLink, RequestsOf, Tokens } from "../parts/links.tsx";
import { List } from "../parts/list.tsx";
import { Money } from "../parts/number.tsx";
import { Page, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

type Listed = ItemOf<"pageRequests">;

const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "slug or ID" },
  { name: "team", label: "Team", hint: "ID" },
  { name: "person", label: "Person", hint: "per_…" },
  { name: "key", label: "Key", hint: "key_…" },
  { name: "model", label: "Model" },
  { name: "operation", label: "Operation", choices: choicesOf("pageRequests", "operation") },
  { name: "outcome", label: "Outcome", choices: choicesOf("pageRequests", "outcome") },
  { name: "upstream", label: "Engine" },
  { name: "from", label: "From", hint: "2026-11-01" },
  { name: "to", label: "Before", hint: "2026-12-01" },
];

export function RequestsPage() {
  const offered = membership.value ? filters.slice(1) : filters;
  const input = filtersSet(offered);
  return (
    <Page title="Requests" aside="newest first">
      <Filters of={offered} />
      <RequestList input={input} />
      <CommandLine verb="pageRequests" input={input} />
    </Page>
  );
}

export function RequestList({ input }: { input: Record<string, string> }) {
  return (
    <List
      verb="pageRequests"
      input={input as never}
      none={
        Object.keys(input).length > 0
          ? "No request fits these filters. Records are kept for 13 months, those of refused requests for 30 days."
          : "No request yet. The page Connect has a block to copy for each client."
      }
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
            { head: "Model", cell: ({ model }) => <span class="nowrap">{model ?? "–"}</span> },
            !input.organization && {
              head: "Organization",
              cell: (one) => <OrganizationLink slug={one.organization} />,
            },
            {
              head: "Tokens",
              isNumber: true,
              cell: (one) => <Tokens input={inputTokens(one)} output={one.output_tokens} />,
            },
            { head: "Cost", isNumber: true, cell: ({ cost }) => <Money of={cost.charged} /> },
            { head: "First token", isNumber: true, cell: ({ first_part_ms }) => milliseconds(first_part_ms) },
            { head: "Person", cell: ({ person_id }) => (person_id ? <RequestsOf by="person" id={person_id} /> : "–") },
            { head: "Key", cell: ({ key_id }) => (key_id ? <RequestsOf by="key" id={key_id} /> : "–") },
            {
              head: "Engine",
              cell: ({ upstream, attempts }) => `${upstream ?? "–"}${(attempts ?? 0) > 1 ? ` ×${attempts}` : ""}`,
            },
          ]}
        />
      )}
    </List>
  );
}

/** All that came in, however it was read. */
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
