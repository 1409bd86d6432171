/**
 * Makes the commands of verbs (management operations) from the description of the command in each verb
 * (management/command.ts).
 */
import type { Command } from "commander";
import { Option } from "commander";
import { encode } from "../../core/schema/codec.ts";
import type { ListCommand, ThingCommand } from "../management/command.ts";
import { allOf, type Part } from "../management/page.ts";
import type { Verb } from "../management/verb.ts";
import { type Management, verbs } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import { planLimitOption } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, printJson, versionOption } from "./option.ts";
import { printSaid } from "./said.ts";
import type { CommandContext, Services } from "./services.ts";
import { table } from "./table.ts";
import { askMissing, confirm } from "./verb-ask.ts";
import { argumentsOf, type Given, givenBy, optionsOf, type VerbArguments } from "./verb-option.ts";
import { addWatch, watched } from "./watch.ts";

type Spec = ThingCommand<Given, unknown> | ListCommand<Given, unknown>;
type Call = (given: Given) => Promise<unknown>;

/** Adds a group of commands (`team`) with one command for each of its verbs, in the order of the contract. */
export function addVerbGroup(program: Command, context: CommandContext, name: string, description: string): Command {
  const group = program.command(name).description(description);
  addVerbCommands(group, context, {});
  return group;
}

type Reaching = typeof withManagement;

/**
 * Adds the commands of verbs to a group that also has other commands. `reaching`: by the name of a verb, the function
 * that connects its command to `Management`; absent: `withManagement`.
 */
export function addVerbCommands(group: Command, context: CommandContext, reaching: Readonly<Record<string, Reaching>>) {
  const mine = verbs.filter(({ command }) => command?.words.startsWith(`${group.name()} `));
  for (const verb of mine) addVerbCommand(group, context, verb, reaching[verb.name]);
}

export function addWordCommand(program: Command, context: CommandContext, word: string): void {
  addVerbCommand(program, context, verbs.find(({ command }) => command?.words === word)!);
}

function addVerbCommand(
  group: Command,
  { services }: CommandContext,
  verb: Verb,
  reaching: Reaching = withManagement,
): void {
  const spec = verb.command as Spec;
  const command = group.command(spec.words.split(" ").at(-1)!).description(spec.description);
  const { places, options } = argumentsOf(verb);
  for (const { flag, description } of places) command.argument(flag, description);
  for (const one of options) for (const option of optionsOf(one)) command.addOption(option);
  const asked = options.filter(({ isRequired, asks }) => isRequired && asks).map(({ flag }) => flag);
  if (asked.length > 0) command.usage(`[options] ${asked.join(" ")}`);
  if (spec.limits) command.addOption(planLimitOption(spec.limits.flag, spec.limits.description));
  if (spec.confirms) command.option("-y, --yes", "skip the confirmation prompt");
  if (spec.versioned !== undefined) command.addOption(versionOption(spec.versioned));
  if (verb.live) addWatch(command);
  addForms(command, spec);
  if (spec.help !== undefined) command.addHelpText("after", spec.help);
  command.action(async (...received: unknown[]) => {
    const chosen = command.opts<Given & JsonFlag>();
    const typed = givenBy(command, { places, options }, received);
    const given: Given = await askMissing(services, command, verb, {
      ...(spec.limits && (chosen.limit as object)),
      ...typed,
    });
    await run({ services, reaching }, command, verb, { places, options }, given);
  });
}

/** Adds `--json`, and an option for each other output format. */
function addForms(command: Command, { formats = {} }: Spec): void {
  const names = Object.values(formats).map(({ flag }) => flag.replace("--", ""));
  const json = jsonOption();
  command.addOption(names.length === 0 ? json : json.conflicts(names));
  for (const [at, { flag, description }] of Object.values(formats).entries())
    command.addOption(new Option(flag, description).conflicts(names.slice(at + 1)));
}

async function run(
  { services, reaching }: { services: Services; reaching: Reaching },
  command: Command,
  verb: Verb,
  { places }: VerbArguments,
  given: Given,
): Promise<void> {
  const spec = verb.command as Spec;
  const chosen = command.opts<Given & JsonFlag & { ifVersion?: number; yes?: true; watch?: true }>();
  const isBare = Object.keys(given).length === places.filter(({ member }) => member !== null).length;
  if (spec.needsOneOf !== undefined && isBare) missing(command, spec.needsOneOf);
  const { reads } = spec;
  const called = reads && isBare ? verbs.find(({ name }) => name === reads.name)! : verb;
  if (chosen.ifVersion !== undefined) given.version = chosen.ifVersion;
  if (chosen.watch) {
    return watched(services, verb, (answer) => print(services, chosen, verb, given, answer, true));
  }
  if (spec.confirms && !chosen.yes) await confirm(services, chosen, spec.confirms, given);
  const form = Object.keys(spec.formats ?? {}).find((name) => chosen[name]);
  const input = (form && verb.formats?.[form]?.asks?.(given)) || given;
  const answer = await reaching(services, (manage) =>
    answered(manage[called.name as keyof Management] as Call, called, input),
  );
  if (form) return services.terminal.out([...verb.formats![form]!.write(answer as never)].join(""));
  print(services, chosen, called === verb ? verb : ({ ...called, command: spec } as Verb), given, answer);
}

/**
 * Calls the verb, and returns its answer. For a list that is printed whole, all pages are read and returned as one
 * list.
 */
async function answered(call: Call, { command }: Verb, given: Given): Promise<unknown> {
  const { parts, order } = (command ?? {}) as Partial<ListCommand<Given, unknown>>;
  const part = (page: object) => call({ ...given, ...page }) as Promise<Part<unknown>>;
  if (parts === undefined) return call(given);
  const { limit, cursor } = given as { limit?: number; cursor?: string };
  const items = await allOf(part, limit, cursor);
  return { data: order ? order(items) : items, nextCursor: null };
}

function print(
  services: Services,
  flags: JsonFlag,
  verb: Verb,
  given: Given,
  answer: unknown,
  isWatched = false,
): void {
  const { terminal, now_ms } = services;
  const spec = verb.command as Spec;
  if (spec.notes) terminal.err(spec.notes(answer));
  if (flags.json) {
    const json = encode(verb.answers, answer as never) as Given;
    const member = spec.prints ?? ("columns" in spec ? "data" : undefined);
    const printed = member === undefined ? json : json[member];
    if (isWatched) terminal.out(`${JSON.stringify(printed)}\n`);
    else printJson(terminal, printed);
  } else if ("columns" in spec) terminal.out(listed(services, spec, given, (answer as { data: unknown[] }).data));
  else printSaid(terminal, spec.says(answer, given, now_ms()), now_ms(), isWatched);
  const failure = spec.fails?.(answer) ?? null;
  if (failure !== null) throw new Error(failure);
}

function listed(
  { terminal, now_ms }: Services,
  spec: ListCommand<Given, unknown>,
  given: Given,
  data: unknown[],
): string {
  const none = typeof spec.none === "string" ? spec.none : spec.none(given);
  const words = data.length === 0 ? none : table(terminal, spec.columns, data, now_ms());
  const after = spec.after?.(data, now_ms()) ?? null;
  return after === null ? words : `${words}\n${after}\n`;
}
