/**
 * The arguments and options of the command of a verb (a management operation), and the input that the typed values
 * form.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { snakeName } from "../../core/schema/codec.ts";
import type { Shape } from "../../core/schema/shape.ts";
import type { Flag } from "../management/command.ts";
import type { Verb } from "../management/verb.ts";
import { limitValueOption } from "./limits.ts";
import { missing, names, numbers, wholeNumber } from "./option.ts";

export type Given = Record<string, unknown>;

/** A flag, with the member of the input that the flag sets, and the schema of that member's values. */
interface MemberFlag extends Flag {
  member: string;
  shape: Shape;
}

/** An argument. If `member` is null, the argument says whether the member `switches` has a value (`<on|off>`). */
interface FlagTarget extends Omit<MemberFlag, "member"> {
  member: string | null;
  switches: string | null;
}

export interface VerbArguments {
  places: readonly FlagTarget[];
  options: readonly MemberFlag[];
}

const isOption = ({ flag }: Flag) => flag.startsWith("-");

export function argumentsOf(verb: Verb): VerbArguments {
  const all = Object.entries((verb.command!.takes ?? {}) as Record<string, Flag>).map(
    ([member, flag]): MemberFlag => ({ ...flag, member, shape: shapeOf(verb, member) }),
  );
  const places = all.flatMap((one): FlagTarget[] => {
    const { none, member } = one;
    if (!isOption(one)) return [{ ...one, switches: null }];
    return typeof none === "object" && !isOption(none) ? [{ ...one, ...none, member: null, switches: member }] : [];
  });
  return { places, options: all.filter((one) => isOption(one) || typeof one.none === "object") };
}

/** The schema of a member; if the member may be null, the schema of its other values. */
function shapeOf({ input }: Verb, member: string): Shape {
  const shape = input.properties[snakeName(member)] as Shape;
  const others = shape.anyOf?.filter(({ type }) => type !== "null") ?? [];
  return others.length === 1 ? others[0]! : shape;
}

/** The options of a member: the option that sets it and, if there is one, the option that makes it null. */
export function optionsOf(one: MemberFlag): Option[] {
  const { none } = one;
  return [
    ...(isOption(one) ? [optionOf(one)] : []),
    ...(typeof none === "object" && isOption(none) ? [new Option(none.flag, none.description)] : []),
  ];
}

function optionOf(one: MemberFlag): Option {
  const { flag, description, hasChoices, isRequired, asks, shape, none } = one;
  if (shape.properties) return limitValueOption(flag, description);
  const option = new Option(flag, description).makeOptionMandatory(isRequired === true && asks === undefined);
  const parser = parserOf(one);
  if (hasChoices) option.choices(shape.enum as string[]);
  else if (typeof none === "string")
    option.argParser((text, before) => (text.trim() === none ? none : (parser?.(text, before) ?? text)));
  else if (parser) option.argParser(parser);
  return option;
}

type Parser = (text: string, before: unknown) => unknown;

/** The parser of an option's text, which follows from the schema. Undefined: the text is the value without parsing. */
function parserOf({ shape, adds, unit, words, none }: MemberFlag): Parser | undefined {
  const values = (shape.items ?? shape) as Shape;
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = values;
  if (adds) return (text, before) => (before === undefined ? text : `${before},${text}`);
  if (words) return wordParser(words);
  if (unit) return counted(unit, typeof none === "string" ? none : "none");
  if (values !== shape && values.type === "integer") return numbers(minimum, maximum);
  if (shape.type === "array") return (text, before) => names(text, before as string[] | undefined);
  if (shape.type === "integer") return wholeNumber(minimum, maximum);
  return shape.type === "object" ? (text, before) => pairs(text, before as Pairs | undefined) : undefined;
}

function wordParser(words: Readonly<Record<string, boolean>>): Parser {
  const all = Object.keys(words);
  return (text) => {
    if (all.includes(text)) return words[text];
    throw new InvalidArgumentError(`Specify ${all.join(" or ")}.`);
  };
}

/** Parses a number with or without its unit: `90d` or `90`. */
function counted(unit: string, none: string): Parser {
  const form = new RegExp(`^(\\d{1,4})${unit}?$`);
  return (text) => {
    const count = Number(form.exec(text.trim())?.[1] ?? 0);
    if (count > 0) return count;
    throw new InvalidArgumentError(`Specify days, such as 90${unit}, or ${none}.`);
  };
}

type Pairs = Record<string, string | null>;

/** Parses `stage=production`; if the option is repeated, all its pairs are kept. */
function pairs(text: string, before: Pairs | undefined): Pairs {
  const [name = "", ...value] = text.split("=");
  return { ...before, [name]: value.join("=") || null };
}

/** The members of the verb's input for which values were typed. */
export function givenBy(command: Command, { places, options }: VerbArguments, received: unknown[]): Given {
  const chosen = command.opts<Given>();
  const given: Given = {};
  const typedFor = (one: MemberFlag) => chosen[new Option(one.flag).attributeName()];
  for (const [at, { member }] of places.entries())
    if (member !== null && received[at] !== undefined) given[member] = received[at];
  for (const one of options) {
    const { member, none, fallback } = one;
    if (isOption(one)) {
      const value = typedFor(one) ?? fallback;
      const isNone = value === false && typeof none === "object";
      if (value !== undefined) given[member] = isNone || value === none ? null : value;
    }
    if (typeof none === "object" && isOption(none) && chosen[new Option(none.flag).attributeName()] === true) {
      if (given[member] !== undefined) command.error(`error: specify a ${member} or ${none.flag}, not both`);
      given[member] = null;
    }
    if (!isOption(one) && typeof none === "object" && given[member] === undefined)
      missing(command, `${member.toUpperCase()} or ${none.flag}`);
  }
  for (const [at, place] of places.entries())
    if (place.switches !== null) applySwitch(command, place, String(received[at]), options, given);
  return given;
}

/**
 * Applies an argument that is one of two words, such as `<on|off>`. With the first word, an option must give a value of
 * the member. The second word makes the member null.
 */
function applySwitch(
  command: Command,
  { flag, switches }: FlagTarget,
  word: string,
  options: readonly MemberFlag[],
  given: Given,
): void {
  const [on = "", off = ""] = flag.slice(1, -1).split("|");
  const { flag: option } = options.find(({ member }) => member === switches)!;
  const [name] = option.split(" ");
  if (word !== on && word !== off) command.error(`error: specify ${on} or ${off}, not '${word.slice(0, 40)}'`);
  const hasValue = given[switches!] !== undefined;
  if (word === on && !hasValue)
    missing(
      command,
      option.replace(/<(.*)>/, (_, value: string) => value.toUpperCase()),
    );
  if (word === off && hasValue) command.error(`error: ${name} is only valid with ${on}`);
  if (word === off) given[switches!] = null;
}
