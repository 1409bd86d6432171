/** The pages that list the teams, the people or the keys of all organizations that the reader may see. */
import type { ComponentChildren, FunctionComponent } from "preact";
import type { VerbName } from "../core/client.ts";
import { membership } from "../core/session.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { CreateKey } from "../parts/key-acts.tsx";
import { KeyList } from "../parts/keys.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { Page } from "../parts/section.tsx";
import { CreateTeam, TeamList } from "../parts/teams.tsx";

interface OfAll {
  title: string;
  thing: string;
  verb: VerbName;
  filters: readonly Filter[];
  /** The button that creates one of the listed things, in the organization that the filter names. */
  create?: (organization: string | null) => ComponentChildren;
  /**
   * Shows the list. `hasOrganizations`: the rows may be of several organizations. `none`: the text if no row matches
   * the filters.
   */
  list: (input: Record<string, string>, hasOrganizations: boolean, none: string | undefined) => ComponentChildren;
}

/** Returns the component of a page. A reader who acts in one organization gets no filter for organizations. */
function pageOf({ title, thing, verb, filters, create, list }: OfAll): FunctionComponent {
  return function OfAllPage() {
    const own = membership.value !== null;
    const offered = own ? filters.filter(({ name }) => name !== "organization") : filters;
    const input = filtersSet(offered);
    const organization = input.organization ?? null;
    const isFiltered = Object.keys(input).length > 0;
    return (
      <Page title={title} aside={create?.(organization)}>
        <Filters of={offered} />
        {list(input, !own && organization === null, isFiltered ? `No ${thing} fits these filters.` : undefined)}
        <CommandLine verb={verb} input={input} />
      </Page>
    );
  };
}

const ofOrganization: Filter = { name: "organization", label: "Organization", hint: "all", finds: "organization" };
const ofTeam: Filter = { name: "team", label: "Team", hint: "all", finds: "team" };

export const TeamsPage = pageOf({
  title: "Teams",
  thing: "team",
  verb: "pageTeams",
  filters: [ofOrganization, { name: "over", label: "Used at least, %", hint: "80" }],
  create: (organization) => <CreateTeam organization={organization} />,
  list: (input, hasOrganizations, none) => <TeamList input={input} hasOrganizations={hasOrganizations} none={none} />,
});

export const PeoplePage = pageOf({
  title: "People",
  thing: "person",
  verb: "pagePeople",
  filters: [
    { name: "search", label: "Name or e-mail" },
    ofOrganization,
    ofTeam,
    { name: "suspended", label: "Suspended", choices: ["true", "false"] },
  ],
  list: (input, _, none) => <PeopleList input={input} none={none} />,
});

export const KeysPage = pageOf({
  title: "Keys",
  thing: "key",
  verb: "pageKeys",
  filters: [
    ofOrganization,
    ofTeam,
    { name: "person", label: "Person", hint: "all", finds: "person" },
    { name: "state", label: "State", choices: choicesOf("pageKeys", "state") },
  ],
  create: (organization) => <CreateKey organization={organization} />,
  list: (input, hasOrganizations, none) => (
    <KeyList caption="Keys" input={input} hasOrganizations={hasOrganizations} none={none} />
  ),
});
