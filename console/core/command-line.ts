/** The command of the command line that does the same as a form of a page. Pure. */
import { limitNames } from "./form.ts";
import type { CommandEntry, FlagEntry } from "./verb-table.ts";

export function commandLine(
  { words, flags, limits, isConfirmed }: CommandEntry,
  input: Record<string, unknown>,
): string {
  const places: string[] = [];
  const options: string[] = [];
  for (const [member, entry] of Object.entries(flags)) {
    const isPlace = !entry.flag.startsWith("-");
    const value = input[member];
    if (value === null && entry.none !== null) (entry.none.startsWith("<") ? places : options).push(noneOf(entry));
    else if (isPlace) places.push(placeOf(entry.flag.slice(1, -1), value));
    else if (value != null && value !== "") {
      if (entry.none?.startsWith("<")) places.push(wordsIn(entry.none)[0]!);
      const option = optionOf(entry, value);
      if (option !== null) options.push(option);
    }
  }
  const own = Object.fromEntries(limitNames.filter((name) => name in input).map((name) => [name, input[name]]));
  if (limits && Object.keys(own).length > 0) options.push(`${limits} ${valueText(own)}`);
  if (isConfirmed) options.push("--yes");
  return ["sluice", words, ...places, ...options].join(" ");
}

/** The command `sluice usage report`, with the time range, filters and groups of the page Usage. */
export function reportCommand({ organization, ...rest }: Record<string, string | undefined>): string {
  const options = Object.entries({ ...rest, org: organization }).filter(([, value]) => value);
  return ["sluice usage report", ...options.map(([name, value]) => `--${name} ${quoted(value)}`)].join(" ");
}

/** The word that one types for null: `--no-owner`, `off` of `<on|off>`, or `--models all`. */
function noneOf({ flag, none }: FlagEntry): string {
  if (none!.startsWith("-")) return none!;
  return none!.startsWith("<") ? wordsIn(none!)[1]! : `${nameOf(flag)} ${none}`;
}

const wordsIn = (place: string) => place.slice(1, -1).split("|");

function placeOf(name: string, value: unknown): string {
  return quoted(value === undefined || value === null || value === "" ? name.toUpperCase() : value);
}

const nameOf = (flag: string) => (flag.split(" ").find((part) => part.startsWith("--")) ?? flag).replace(",", "");

/** An option with its value, as one types it. Null: the command leaves the option out. */
function optionOf({ flag, words }: FlagEntry, value: unknown): string | null {
  if (typeof value !== "boolean") return `${nameOf(flag)} ${valueText(value)}`;
  const word = Object.keys(words).find((one) => words[one] === value);
  if (word !== undefined) return `${nameOf(flag)} ${word}`;
  return value ? nameOf(flag) : null;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return quoted(value.join(","));
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).map(([name, one]) => `${name}=${one ?? "none"}`);
    return quoted(pairs.join(","));
  }
  return quoted(value);
}

/** The value, quoted if necessary so that a shell takes it for one word. */
export function quoted(value: unknown): string {
  const text = String(value);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
