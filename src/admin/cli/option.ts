/**
 * Parses options. A malformed option is a usage error (exit code 2); an option that names a missing thing fails later
 * (exit code 1).
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { plainJson } from "../../core/inference/plain-text.ts";
import type { Terminal } from "./terminal.ts";

export interface JsonFlag {
  json?: boolean;
}

export function jsonOption(): Option {
  return new Option("--json", "print one JSON value and nothing else");
}

/** Parses `a,b`; if the option is repeated, the names of all its occurrences are joined. */
export function names(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), ...value.split(",").filter((name) => name.trim() !== "")];
}

export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Specify a whole number from ${min} to ${max}.`);
  };
}

/** Parses `30m`, `1h` or `0s` into milliseconds. */
export function duration(value: string): number {
  const unit_ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[value.slice(-1)];
  if (unit_ms && /^\d{1,9}.$/.test(value)) return Number(value.slice(0, -1)) * unit_ms;
  throw new InvalidArgumentError("Specify a duration such as 30s, 5m or 1h, or 0s for none.");
}

/** Makes a parser of whole numbers with commas between them, such as `80,100`. */
export function numbers(min: number, max: number): (value: string) => number[] {
  return (value) => {
    const found = value.split(",").map((one) => (/^\d{1,9}$/.test(one.trim()) ? Number(one) : Number.NaN));
    if (found.every((one) => one >= min && one <= max)) return found;
    throw new InvalidArgumentError(`Specify whole numbers from ${min} to ${max}, with commas between them.`);
  };
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${plainJson(JSON.stringify(value, null, terminal.width === null ? undefined : 2))}\n`);
}

export function versionOption(what: string): Option {
  return new Option("--if-version <n>", `only if the ${what} still has this version`).argParser(
    wholeNumber(1, 999_999_999),
  );
}

/** Prints the answer of a command: one JSON value with `--json`, else words. */
export function printAnswer(terminal: Terminal, { json }: JsonFlag, value: unknown, words: string): void {
  if (json) printJson(terminal, value);
  else terminal.out(words);
}

/** Ends the command with a usage error. */
export function missing(command: Command, what: string): never {
  return command.error(`error: missing ${what}`);
}
