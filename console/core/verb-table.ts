/**
 * The pages need to know of each verb: where it stands in the interface, and how its command is typed. A bundle with the
 * verbs themselves would be ten times as large, so the build runs this file and puts its answer in the place of the call.
 */
import type { Flag } from "../../src/management/command.ts";
import type { Verb } from "../../src/management/verb.ts";
import { verbs } from "../../src/management/verbs.ts";
import { snakeName } from "../../src/schema/codec.ts";

export interface VerbEntry {
  method: string;
  /** Below `/management/v1`, with `{id}`. */
  path: string;
  /** The member of the input that stands in the place of `{id}`. */
  id: string | null;
  kind: "reading" | "creation" | "change" | "act";
  /** Null: the command line has no command for it, or one of its own making. */
  command: CommandEntry | null;
}

export interface CommandEntry {
  words: string;
  /** The argument or option of each member of the input. */
  flags: Record<string, string>;
  /** The option for limits that are members of the input by themselves. */
  limits: string | null;
}

export function verbTable(): Record<string, VerbEntry> {
  return Object.fromEntries(verbs.map((verb) => [verb.name, entryOf(verb)]));
}

function entryOf({ method, path, id, kind, command }: Verb): VerbEntry {
  return { method, path, id: id && snakeName(id), kind, command: command ? commandOf(command) : null };
}

function commandOf({ words, takes, limits }: NonNullable<Verb["command"]>): CommandEntry {
  const flags = Object.entries(takes as Record<string, Flag>).map(([member, { flag }]) => [snakeName(member), flag]);
  return { words, flags: Object.fromEntries(flags), limits: limits?.flag ?? null };
}
