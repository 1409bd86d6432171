/** The teams of all organizations that one sees. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { membership } from "../core/session.ts";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { Page } from "../parts/section.tsx";
import { CreateTeam, TeamList } from "../parts/teams.tsx";

const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "all", finds: "organization" },
  { name: "over", label: "Used at least, %", hint: "80" },
];

export function TeamsPage() {
  const [turn, setTurn] = useState(0);
  const offered = membership.value ? filters.slice(1) : filters;
  const input = filtersSet(offered);
  const organization = input.organization ?? null;
  return (
    <Page title="Teams" aside={<CreateTeam organization={organization} done={() => setTurn(turn + 1)} />}>
      <Filters of={offered} />
      <Fragment key={turn}>
        <TeamList input={input} hasOrganizations={!organization && !membership.value} />
      </Fragment>
      <CommandLine verb="pageTeams" input={input} />
    </Page>
  );
}
