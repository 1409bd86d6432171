/** The command that does the same as an act of a page. Pure. */
import { limitNames } from "./form.ts";
import type { Typed } from "./typed-commands.ts";
import type { CommandEntry } from "./verb-table.ts";

export function commandLine({ words, flags, limits }: CommandEntry, input: Record<string, unknown>): string {
  const places: string[] = [];
  const options: string[] = [];
  for (const [member, flag] of Object.entries(flags)) {
    const value = input[member];
    if (!flag.startsWith("-")) places.push(placeOf(flag.slice(1, -1), value));
    else if (value !== undefined && value !== "" && value !== false) options.push(optionOf(flag, value));
  }
  const own = Object.fromEntries(limitNames.filter((name) => name in input).map((name) => [name, input[name]]));
  if (limits && Object.keys(own).length > 0) options.push(`${limits} ${valueText(own)}`);
  return ["sluice", words, ...places, ...options].join(" ");
}

/** The line of a command that no verb declares. */
export function typedLine({ words, places = {}, options = {} }: Typed): string {
  const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== "");
  return [
    ...["sluice", words],
    ...Object.entries(places).map(([name, value]) => placeOf(name, value)),
    ...given.map(([name, value]) => optionOf(`--${name}`, value)),
  ].join(" ");
}

function placeOf(name: string, value: unknown): string {
  return quoted(value === undefined || value === null || value === "" ? name.toUpperCase() : value);
}

function optionOf(flag: string, value: unknown): string {
  const [name = flag] = flag.split(" ").filter((part) => part.startsWith("--"));
  const bare = name.replace(",", "");
  return value === true ? bare : `${bare} ${valueText(value)}`;
}

function valueText(value: unknown): string {
  if (value === null) return "none";
  if (Array.isArray(value)) return quoted(value.join(","));
  if (typeof value === "object") {
    return quoted(
      Object.entries(value)
        .map(([name, one]) => `${name}=${one ?? "none"}`)
        .join(","),
    );
  }
  return quoted(value);
}

function quoted(value: unknown): string {
  const text = String(value);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
