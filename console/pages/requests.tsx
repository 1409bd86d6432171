/** Requests, newest first. The address keeps the filters. */
import { isMember, membership } from "../core/session.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { RequestList } from "../parts/request-list.tsx";
import { Page } from "../parts/section.tsx";

const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "all", finds: "organization" },
  { name: "team", label: "Team", hint: "all", finds: "team" },
  { name: "person", label: "Person", hint: "all", finds: "person" },
  { name: "key", label: "Key", hint: "all", finds: "key" },
  { name: "model", label: "Model" },
  { name: "operation", label: "Operation", choices: choicesOf("pageRequests", "operation") },
  { name: "outcome", label: "Outcome", choices: choicesOf("pageRequests", "outcome") },
  { name: "upstream", label: "Engine" },
  { name: "from", label: "From, UTC", hint: "2026-11-01" },
  { name: "to", label: "To, UTC", hint: "2026-12-01" },
];

/** Columns that are left out when the filter of the same name is set, because every row would have the same value. */
const columnsSaid = ["organization", "person", "key"] as const;

const nothingFits =
  "No request fits these filters. Records are kept for 13 months, those of refused requests for 30 days.";

/**
 * The filters that members get. They get none for people, because all their requests are their own, and none for
 * engines, which they may not see.
 */
const ofMembers = ["key", "model", "operation", "outcome", "from", "to"];

function offeredFilters(): readonly Filter[] {
  if (isMember.value) return filters.filter(({ name }) => ofMembers.includes(name));
  return membership.value ? filters.slice(1) : filters;
}

export function RequestsPage() {
  const offered = offeredFilters();
  const input = filtersSet(offered);
  return (
    <Page title="Requests" aside="newest first">
      <Filters of={offered} />
      <RequestList
        input={input}
        without={[
          ...columnsSaid.filter((name) => name in input),
          ...(membership.value ? (["organization"] as const) : []),
        ]}
        {...(Object.keys(input).length > 0 && { none: nothingFits })}
      />
      <CommandLine verb="pageRequests" input={input} />
    </Page>
  );
}
