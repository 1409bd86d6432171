/** The keys of all organizations that one sees. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { membership } from "../core/session.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { CreateKey } from "../parts/key-acts.tsx";
import { KeyList } from "../parts/keys.tsx";
import { Page } from "../parts/section.tsx";

const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "all", finds: "organization" },
  { name: "team", label: "Team", hint: "all", finds: "team" },
  { name: "person", label: "Person", hint: "all", finds: "person" },
  { name: "state", label: "State", choices: choicesOf("pageKeys", "state") },
];

export function KeysPage() {
  const [turn, setTurn] = useState(0);
  const offered = membership.value ? filters.slice(1) : filters;
  const input = filtersSet(offered);
  const organization = input.organization ?? null;
  return (
    <Page title="Keys" aside={<CreateKey organization={organization} done={() => setTurn(turn + 1)} />}>
      <Filters of={offered} />
      <Fragment key={turn}>
        <KeyList caption="Keys" input={input} hasOrganizations={!organization && !membership.value} />
      </Fragment>
      <CommandLine verb="pageKeys" input={input} />
    </Page>
  );
}
