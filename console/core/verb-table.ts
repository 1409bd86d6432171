/**
 * The facts about each verb that the pages need: its place in the interface, its input, and how its command is typed. A
 * bundle with the verbs themselves would be ten times as large. So the build runs this file, and replaces the call
 * of `verbTable` by the table that it returns.
 */
import type { Flag } from "../../src/admin/management/command.ts";
import type { Verb } from "../../src/admin/management/verb.ts";
import { type VerbName, verbs } from "../../src/admin/management/verbs.ts";
import { invitation_days } from "../../src/admin/store/invitations.ts";
import { limitRequest_days } from "../../src/admin/store/limit-requests.ts";
import { plainPattern } from "../../src/core/inference/plain-text.ts";
import { snakeName } from "../../src/core/schema/codec.ts";
import type { Shape } from "../../src/core/schema/shape.ts";

export interface VerbEntry {
  method: string;
  /** The path below `/management/v1`, with `{id}`, and possibly a second placeholder with the name of its member. */
  path: string;
  /** The member of the input that replaces `{id}`. */
  id: string | null;
  /** The member of the input that replaces the second placeholder. */
  secondId: string | null;
  kind: "reading" | "creation" | "change" | "act";
  members: Record<string, MemberEntry>;
  /** The verb's command; null: the command line has none. */
  command: CommandEntry | null;
}

/** The facts about a member of the input that a form needs. `signed`: a whole number that may be below 0. */
export interface MemberEntry {
  kind: "text" | "number" | "signed" | "choice" | "flag" | "list" | "day";
  choices: string[];
  isRequired: boolean;
  /** The pattern that a text must match, if it differs from the usual one of its kind. */
  pattern?: string;
}

export interface CommandEntry {
  words: string;
  /** How each member of the input is typed. The key is the member, and the value its argument or option. */
  flags: Record<string, FlagEntry>;
  /** The option that takes those limits that are direct members of the input. Null: there are none. */
  limits: string | null;
  /** Whether the command asks for a confirmation, unless it gets `--yes`. */
  isConfirmed: boolean;
}

export interface FlagEntry {
  flag: string;
  /**
   * The way to type null: a word, an option, or the second word of an argument (`<on|off>`). Null: the flag is left
   * out.
   */
  none: string | null;
  /** The words to type for a boolean value. The key is the word, and the value what it stands for. */
  words: Record<string, boolean>;
}

export function verbTable(): Record<string, VerbEntry> {
  return Object.fromEntries(verbs.map((verb) => [verb.name, entryOf(verb)]));
}

/** How many days an invitation or a request for a higher limit stays open. */
export const days = (of: "invitation" | "limitRequest"): number =>
  of === "invitation" ? invitation_days : limitRequest_days;

/** The values that a verb accepts for this member of its input. */
export function choicesOf(verbName: VerbName, member: string): string[] {
  const { choices } = entryOf(verbs.find(({ name }) => name === verbName)!).members[member]!;
  if (choices.length === 0) throw new Error(`The verb ${verbName} has no choices for ${member}.`);
  return choices;
}

function entryOf({ method, path, id, secondId, kind, input, command }: Verb): VerbEntry {
  const { properties = {}, required = [] } = input as Shape;
  const members = Object.entries(properties).map(([name, shape]) => [
    snakeName(name),
    memberOf(shape, required.includes(name)),
  ]);
  return {
    method,
    path,
    id: id && snakeName(id),
    secondId: secondId && snakeName(secondId),
    kind,
    members: Object.fromEntries(members),
    command: command ? commandOf(command) : null,
  };
}

function memberOf(shape: Shape, isRequired: boolean): MemberEntry {
  const others = shape.anyOf?.filter(({ type }) => type !== "null") ?? [shape];
  const isNullable = others.length < (shape.anyOf?.length ?? 1);
  const [one = shape] = others;
  return {
    kind: one.type === "integer" && others.length > 1 ? "signed" : kindOf(one),
    choices: (one.enum ?? []) as string[],
    isRequired: isRequired && !isNullable,
    ...(kindOf(one) === "text" && one.pattern && one.pattern !== plainPattern && { pattern: one.pattern }),
  };
}

function kindOf(shape: Shape & { "x-must-be"?: string }): MemberEntry["kind"] {
  if (shape.enum) return "choice";
  if (shape.type === "boolean") return "flag";
  if (shape.type === "array") return "list";
  if (shape.type === "integer") return "number";
  return shape["x-must-be"]?.startsWith("an instant") ? "day" : "text";
}

function commandOf({ words, takes = {}, limits, confirms }: NonNullable<Verb["command"]>): CommandEntry {
  const flags = Object.entries(takes as Record<string, Flag>).map(([member, { flag, none, words }]) => [
    snakeName(member),
    { flag, none: typeof none === "object" ? none.flag : (none ?? null), words: words ?? {} },
  ]);
  return { words, flags: Object.fromEntries(flags), limits: limits?.flag ?? null, isConfirmed: confirms !== undefined };
}
