/** Filters of a list. They stand in the address, so that the list can be sent to a colleague. */
import { useId } from "preact/hooks";
import { query, replaceQuery } from "../core/address.ts";

export interface Filter {
  name: string;
  label: string;
  choices?: readonly string[];
  hint?: string;
  /** The choice that holds where the address names none; else none is left out. */
  fallback?: string;
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

function FilterOf({ of: { name, label, choices, hint, fallback } }: { of: Filter }) {
  const id = useId();
  const value = query.value.get(name) ?? fallback ?? "";
  return (
    <div class="filter">
      <label for={id}>{label}</label>
      {choices ? (
        <select id={id} value={value} onChange={(event) => replaceQuery({ [name]: event.currentTarget.value })}>
          {fallback === undefined && <option value="">all</option>}
          {choices.map((one) => (
            <option key={one} value={one}>
              {one.replaceAll("_", " ")}
            </option>
          ))}
        </select>
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
      )}
    </div>
  );
}

/** The filters that are set, as members of an input. */
export function filtersSet(of: readonly Filter[]): Record<string, string> {
  const set = of.map(({ name }) => [name, query.value.get(name) ?? ""] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== ""));
}
