/** How options are read. What is wrong in form is wrong use (exit code 2); what does not exist is refused later (1). */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Terminal } from "./terminal.ts";

export function jsonOption(): Option {
  return new Option("--json", "print one JSON value and nothing else");
}

/** `a,b`, and again: names collect. */
export function names(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), ...value.split(",")];
}

export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
  };
}

/** Micro-units: exact to 10^15. */
export function units(min: number): (value: string) => number {
  return (value) => {
    const number = /^[+-]?\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min) return number;
    throw new InvalidArgumentError(`Give a whole number of units${min > 0 ? ` from ${min} on` : ", such as -250000"}.`);
  };
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${JSON.stringify(value, null, terminal.width === null ? undefined : 2)}\n`);
}

/** Ends the command as wrong use. */
export function missing(command: Command, what: string): never {
  return command.error(`error: ${what} is missing (see: sluice help ${pathOf(command)})`);
}

function pathOf(command: Command): string {
  return command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name();
}
