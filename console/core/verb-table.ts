/**
 * The pages need to know of each verb: where it stands in the interface, and how its command is typed. A bundle with the
 * verbs themselves would be ten times as large, so the build runs this file and puts its answer in the place of the call.
 */
import type { TSchema } from "typebox";
import type { Flag } from "../../src/admin/management/command.ts";
import type { Verb } from "../../src/admin/management/verb.ts";
import { type VerbName, verbs } from "../../src/admin/management/verbs.ts";
import { snakeName } from "../../src/core/schema/codec.ts";

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

/** The values that a verb takes as this member of its input. */
export function choicesOf(verbName: VerbName, member: string): string[] {
  const input = verbs.find(({ name }) => name === verbName)?.input as
    | { properties?: Record<string, Choice> }
    | undefined;
  const found = Object.entries(input?.properties ?? {}).find(([name]) => snakeName(name) === member)?.[1].enum;
  if (!found) throw new Error(`The verb ${verbName} has no choices for ${member}.`);
  return found;
}

type Choice = TSchema & { enum?: string[] };

function entryOf({ method, path, id, kind, command }: Verb): VerbEntry {
  return { method, path, id: id && snakeName(id), kind, command: command ? commandOf(command) : null };
}

function commandOf({ words, takes, limits }: NonNullable<Verb["command"]>): CommandEntry {
  const flags = Object.entries(takes as Record<string, Flag>).map(([member, { flag }]) => [snakeName(member), flag]);
  return { words, flags: Object.fromEntries(flags), limits: limits?.flag ?? null };
}
