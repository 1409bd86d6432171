/** The commands that verbs declare (src/admin/management/command.ts). */
import { type Command, Option } from "commander";
import { encode, snakeName } from "../../core/schema/codec.ts";
import type { Shape } from "../../core/schema/shape.ts";
import type { Flag, ListCommand, ThingCommand } from "../management/command.ts";
import { allOf, firstOf, type Part } from "../management/page.ts";
import type { Verb } from "../management/verb.ts";
import { type Management, verbs } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { limitOption } from "./limits.ts";
import {
  type JsonFlag,
  jsonOption,
  missing,
  names,
  numbers,
  printAnswer,
  units,
  versionOption,
  wholeNumber,
} from "./option.ts";
import type { Services } from "./services.ts";
import { facts, table } from "./table.ts";
import type { Terminal } from "./terminal.ts";

type Given = Record<string, unknown>;
type Call = (given: Given) => Promise<unknown>;

/** Adds the commands of a group (`team`): first those in `order`, then the others that verbs declare. */
export function addVerbCommands(
  group: Command,
  context: CommandContext,
  order: readonly (string | ((group: Command, context: CommandContext) => void))[],
): void {
  const declared = new Map(
    verbs.flatMap((verb) => {
      const [first, word] = verb.command?.words.split(" ") ?? [];
      return first === group.name() && word !== undefined ? [[word, verb] as const] : [];
    }),
  );
  for (const one of [...order, ...[...declared.keys()].filter((word) => !order.includes(word))]) {
    if (typeof one === "string") addVerbCommand(group, context, declared.get(one)!);
    else one(group, context);
  }
}

function addVerbCommand(group: Command, { services }: CommandContext, verb: Verb): void {
  const spec = verb.command as ThingCommand<Given, unknown> | ListCommand<Given, unknown>;
  const command = group.command(spec.words.split(" ").at(-1)!).description(spec.description);
  const members = Object.entries(spec.takes) as [string, Flag][];
  const places = members.filter(([, { flag }]) => !flag.startsWith("-"));
  const options = members.filter(([, { flag }]) => flag.startsWith("-"));
  for (const [, { flag, description }] of places) command.argument(flag, description);
  for (const [member, flag] of options) command.addOption(optionOf(flag, shapeOf(verb, member)));
  if (spec.limits) command.addOption(limitOption(spec.limits.flag, spec.limits.description));
  if (spec.versioned !== undefined) command.addOption(versionOption(spec.versioned));
  command.addOption(jsonOption());
  if (spec.help !== undefined) command.addHelpText("after", spec.help);

  command.action(async (...received: unknown[]) => {
    const chosen = command.opts<Given>();
    const given: Given = spec.limits ? { ...(chosen.limit as object) } : {};
    for (const [index, [member]] of places.entries()) given[member] = received[index];
    for (const [member, flag] of options) {
      const value = chosen[new Option(flag.flag).attributeName()] ?? flag.fallback;
      if (value !== undefined) given[member] = value;
    }
    if (spec.needsOneOf !== undefined && Object.keys(given).length === places.length) missing(command, spec.needsOneOf);
    if (chosen.ifVersion !== undefined) given.version = chosen.ifVersion;
    const answer = await withManagement(services, (manage) =>
      answered(manage[verb.name as keyof Management] as Call, verb, given),
    );
    print(services, chosen, verb, given, answer);
  });
}

/** The verb's answer; for a list that is printed whole, all its parts as one. */
async function answered(call: Call, { command }: Verb, given: Given): Promise<unknown> {
  const { parts, order } = command as Partial<ListCommand<Given, unknown>>;
  const part = (page: object) => call({ ...given, ...page }) as Promise<Part<unknown>>;
  if (parts === "enough") {
    const { limit, cursor } = given as { limit: number; cursor?: string };
    return { data: await firstOf(part, limit, cursor), nextCursor: null };
  }
  if (parts !== "all") return call(given);
  const items = await allOf(part);
  return { data: order ? order(items) : items, nextCursor: null };
}

function print({ terminal, now_ms }: Services, flags: JsonFlag, verb: Verb, given: Given, answer: unknown): void {
  const spec = verb.command as ThingCommand<Given, unknown> | ListCommand<Given, unknown>;
  const json = encode(verb.answers, answer as never);
  if (!("columns" in spec)) {
    printAnswer(terminal, flags, json, inWords(terminal, spec.says(answer, given)));
    return;
  }
  const { data } = answer as { data: unknown[] };
  const none = typeof spec.none === "string" ? spec.none : spec.none(given);
  const words = data.length === 0 ? none : table(terminal, spec.columns, data, now_ms());
  const after = spec.after?.(data, now_ms()) ?? null;
  printAnswer(terminal, flags, (json as { data: unknown[] }).data, after === null ? words : `${words}\n${after}\n`);
}

function inWords(terminal: Terminal, words: ReturnType<ThingCommand<Given, unknown>["says"]>): string {
  if (typeof words === "string") return words;
  return "facts" in words ? facts(terminal, words.facts) + words.after : facts(terminal, words);
}

/** The schema of a member; if it may be null, the schema of its other values. */
function shapeOf({ input }: Verb, member: string): Shape {
  const shape = input.properties[snakeName(member)] as Shape;
  return shape.anyOf?.find(({ type }) => type !== "null" && type !== "integer") ?? shape;
}

/** The option of a member: the parser of its text follows from the schema. */
function optionOf({ flag, description, hasChoices, isRequired }: Flag, shape: Shape): Option {
  if (shape.properties) return limitOption(flag, description);
  const option = new Option(flag, description).makeOptionMandatory(isRequired === true);
  const values = (shape.items ?? shape) as Shape;
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = values;
  if (hasChoices) option.choices(shape.enum as string[]);
  else if (shape.anyOf) option.argParser(units(Number.NEGATIVE_INFINITY));
  else if (values !== shape && values.type === "integer") option.argParser(numbers(minimum, maximum));
  else if (shape.type === "array") option.argParser(names);
  else if (shape.type === "integer") option.argParser(wholeNumber(minimum, maximum));
  return option;
}
