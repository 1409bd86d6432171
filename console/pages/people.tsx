/** People. */
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { Page } from "../parts/section.tsx";

const filters: readonly Filter[] = [
  { name: "search", label: "Name or e-mail" },
  { name: "organization", label: "Organization", hint: "all", finds: "organization" },
  { name: "team", label: "Team", hint: "all", finds: "team" },
  { name: "suspended", label: "Suspended", choices: ["true", "false"] },
];

export function PeoplePage() {
  const input = filtersSet(filters);
  return (
    <Page title="People">
      <Filters of={filters} />
      <PeopleList input={input} />
      <CommandLine verb="pagePeople" input={input} />
    </Page>
  );
}
