/** Filters of a list. The address keeps them, so that the list can be sent to a colleague. */
import { useState } from "preact/hooks";
import { query, replaceQuery } from "../core/address.ts";
import { type Found, useSearch } from "../core/use-search.ts";
import { Combobox } from "./combobox.tsx";
import { Labelled, Select } from "./select.tsx";

export interface Filter {
  name: string;
  label: string;
  choices?: readonly string[];
  hint?: string;
  /** The choice that applies if the address names none; without it, the filter can be left empty. */
  fallback?: string;
  /** The kind of things that are found by name; the address then has the ID, or for an organization the slug. */
  finds?: Found["kind"];
  /** The text that comes before the ID in the address. */
  prefix?: string;
}

export function Filters({ of }: { of: readonly Filter[] }) {
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {of.map((filter) => (
        <FilterOf key={filter.name} of={filter} />
      ))}
      {of.some(({ name }) => query.value.has(name)) && (
        <button
          type="button"
          class="quiet small"
          onClick={() => replaceQuery(Object.fromEntries(of.map(({ name }) => [name, null])))}
        >
          Clear
        </button>
      )}
    </form>
  );
}

function FilterOf({ of: filter }: { of: Filter }) {
  const { name, label, choices, hint, fallback, finds } = filter;
  const value = query.value.get(name) ?? fallback ?? "";
  const options = choices?.map((one) => [one, one.replaceAll("_", " ")] as const) ?? [];
  return (
    <Labelled label={label}>
      {(id) =>
        finds ? (
          <ThingField key={value} id={id} of={filter} kind={finds} value={value} />
        ) : choices ? (
          <Select
            id={id}
            value={value}
            options={fallback === undefined ? [["", "all"], ...options] : options}
            change={(one) => replaceQuery({ [name]: one })}
          />
        ) : (
          <input
            id={id}
            type="text"
            value={value}
            placeholder={hint}
            spellcheck={false}
            autoComplete="off"
            onChange={(event) => replaceQuery({ [name]: event.currentTarget.value.trim() })}
          />
        )
      }
    </Labelled>
  );
}

interface ThingFieldProps {
  id: string;
  of: Filter;
  kind: Found["kind"];
  value: string;
}

/**
 * A field that finds things by name or a part of it, and shows the chosen one by its name. The slug of an organization,
 * or an actor who is no person, may be typed in full.
 */
function ThingField({ id, of: { name, hint, prefix = "" }, kind, value }: ThingFieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const mayBeTyped = kind === "organization" || prefix !== "";
  const ofValue = value.startsWith(prefix) ? value.slice(prefix.length) : "";
  const chosen = useSearch(kind === "organization" ? "" : ofValue, { kind });
  const { found, isCurrent } = useSearch(typed ?? "", { kind });
  const label = typed ?? chosen.found.find((one) => one.id === ofValue)?.name ?? value;
  const set = (text: string) => {
    setTyped(null);
    if (text !== value) replaceQuery({ [name]: text });
  };
  const leave = () => (typed === "" || (typed !== null && mayBeTyped) ? set(typed.trim()) : setTyped(null));
  return (
    <Combobox
      id={id}
      placeholder={hint}
      text={label}
      setText={setTyped}
      options={isCurrent ? found.map(optionOf) : []}
      none={isCurrent && typed?.trim() && !mayBeTyped ? "Nothing was found." : null}
      choose={({ value: one }) => set(prefix + one)}
      submit={leave}
      onLeave={leave}
    />
  );
}

const optionOf = ({ kind, id, name, organization, detail }: Found) => ({
  key: id,
  name,
  more: [kind === "organization" ? null : organization, detail].filter(Boolean).join(" · "),
  value: kind === "organization" ? (organization ?? id) : id,
});

/** The filters that the address sets, as members of a verb's input. */
export function filtersSet(of: readonly Filter[]): Record<string, string> {
  const set = of.map(({ name }) => [name, query.value.get(name) ?? ""] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== ""));
}
