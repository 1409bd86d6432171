/** The options that `key create` and `key update` share. */
import { Option } from "commander";
import { names } from "./option.ts";

export interface KeyOptions {
  owner?: string;
  label?: Record<string, string | null>;
  allowFrom?: string[];
}

export const ownerOption = () => new Option("--owner <owner>", "the owner, as free text");

export const labelOption = (description: string) =>
  new Option("--label <name=text>", `${description}; can be repeated`).argParser(labelChanges);

export const allowFromOption = (description: string) => new Option("--allow-from <list>", description).argParser(names);

function labelChanges(value: string, before: Record<string, string | null> | undefined) {
  const [label = "", ...text] = value.split("=");
  return { ...before, [label]: text.join("=") || null };
}
