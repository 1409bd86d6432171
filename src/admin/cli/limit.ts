/**
 * `sluice limit`: shows and sets the limits of an organization, a team, a key or a person, by the management operations of
 * `/limits`.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { grouped } from "../../core/inference/money.ts";
import { camelName, encode } from "../../core/schema/codec.ts";
import { matchesModel } from "../../core/store/budget.ts";
import { instant } from "../../core/time/written.ts";
import { type Column, type Facts, type Said, tablePiece } from "../management/command.ts";
import type { LimitChanges } from "../management/limit-change.ts";
import {
  type LimitValue,
  moneyWritten,
  SubjectLimitsShape,
  type SubjectLimitsShown,
  valueInWords,
} from "../management/limit-shape.ts";
import { unmatchedInWords } from "../management/model-patterns.ts";
import { allOf } from "../management/page.ts";
import { standingColumn, standingFacts } from "../management/standing.ts";
import type { Management } from "../management/verbs.ts";
import { type LimitName, limitNames } from "../store/shapes.ts";
import { withManagement } from "./connect.ts";
import { withSignIn } from "./limit-request.ts";
import { type NamedSubject, subjectNamed } from "./limit-subject.ts";
import { typedLimits } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, printJson, versionOption } from "./option.ts";
import { printSaid } from "./said.ts";
import type { CommandContext, Services } from "./services.ts";
import { addVerbCommands } from "./verb-command.ts";

interface Options extends JsonFlag {
  org?: string;
  models?: string;
  ifVersion?: number;
}

const whose = "[org|team|key|person] and its name or ID; a name alone where only one thing has it";

export function addLimitCommands(program: Command, context: CommandContext): void {
  const { services } = context;
  const group = program
    .command("limit")
    .description("show, set and increase for a while what organizations, teams, keys and people can use");
  const add = (name: string, description: string, words: string, help: string) =>
    group
      .command(name)
      .description(description)
      .argument(words, whose)
      .option("--org <org>", "slug or ID of the organization")
      .addOption(jsonOption())
      .addHelpText("after", help);

  add("show", "show limits, where each comes from, and what is used", "[whose...]", showHelp)
    .addOption(
      new Option("--of <what>", "of an organization: those of its keys, teams or people").choices([
        "keys",
        "teams",
        "people",
      ]),
    )
    .option("--model <id>", "only the limits that count for this model")
    .action(async (words: string[], options: Options & { of?: "keys" | "teams" | "people"; model?: string }) => {
      await withManagement(services, async (manage) => {
        const named = await subjectNamed(manage, words, options.org);
        if (options.of !== undefined) return list(services, manage, named, { ...options, of: options.of });
        const found = await read(manage, named);
        print(services, options, options.model === undefined ? found : await onlyFor(manage, found, options.model));
      });
    });

  add("set", "set limits; they count at once, for running requests too", "<whose-and-limits...>", setHelp)
    .option("--models <pattern>", "for these models: an ID, or a prefix such as openai/*")
    .option("--keys", "what keys get that have nothing of their own")
    .option("--members", "what people get who have nothing of their own")
    .addOption(versionOption("subject"))
    .action(async function (this: Command, words: string[], options: Options & { keys?: true; members?: true }) {
      const { names, value } = split(this, words);
      if (value === null) missing(this, "what to set, such as month=50");
      if ([options.keys, options.members, options.models].filter(Boolean).length > 1)
        this.error("error: specify one of --keys, --members and --models");
      const field = options.keys ? "keys" : options.members ? "members" : "own";
      const changes: LimitChanges = options.models ? { models: { [options.models]: value } } : { [field]: value };
      await change(services, names, options, changes);
    });

  add(
    "raise",
    "temporary increase: higher limits until an instant; --end ends it now",
    "<whose-and-limits...>",
    raiseHelp,
  )
    .addOption(new Option("--until <instant>", "when it ends: a date or a weekday (UTC), or ISO 8601 with a time zone"))
    .option("--models <pattern>", "for these models, which have limits of their own")
    .option("--end", "end the temporary increase now")
    .addOption(versionOption("subject"))
    .action(async function (this: Command, words: string[], options: Options & { until?: string; end?: true }) {
      const { names, value } = split(this, words);
      if (options.end ? value !== null || options.until !== undefined : value === null || options.until === undefined)
        missing(
          this,
          options.end ? "nothing else with --end" : "what to increase and until when, such as week=20 --until friday",
        );
      const { models } = options;
      const until = options.until === undefined ? null : instantTyped(options.until, services.now_ms());
      const raise = {
        ...(models === undefined ? {} : { models }),
        ...(options.end ? { limits: null } : { limits: value, until }),
      };
      await change(services, names, options, { raise: options.end && models === undefined ? null : (raise as never) });
    });
  addVerbCommands(group, context, { requestLimit: withSignIn });
}

/** Splits the typed words into words that name the subject and words that set limits. */
function split(command: Command, words: readonly string[]) {
  const limits = words.filter((word) => word.includes("="));
  try {
    const value = limits.length === 0 ? null : typedLimits(limits.join(","));
    return { names: words.filter((word) => !word.includes("=")), value };
  } catch (thrown) {
    if (!(thrown instanceof InvalidArgumentError)) throw thrown;
    return command.error(`error: ${thrown.message}`);
  }
}

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/**
 * The typed instant. A weekday is the next day of that name. A weekday and a date both mean the first moment of the day
 * in UTC.
 */
export function instantTyped(text: string, now_ms: number): string {
  const day = weekdays.indexOf(text.trim().toLowerCase());
  if (day < 0) return text;
  const now = new Date(now_ms);
  const days = (day - now.getUTCDay() + 7) % 7 || 7;
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days)).toISOString();
}

/** For each kind of subject, its word in the names of the verbs, and the members of their inputs that name it. */
const subjects = {
  org: { word: "Organization", inputOf: ({ id }: NamedSubject) => ({ organization: id }) },
  team: { word: "Team", inputOf: ({ id }: NamedSubject) => ({ team: id }) },
  key: { word: "Key", inputOf: ({ id }: NamedSubject) => ({ id }) },
  person: { word: "Person", inputOf: ({ id, organization }: NamedSubject) => ({ person: id, organization }) },
} as const;

function read(manage: Management, named: NamedSubject): Promise<SubjectLimitsShown> {
  const { word, inputOf } = subjects[named.kind];
  return manage[`find${word}Limits`](inputOf(named) as never);
}

async function change(
  services: Services,
  words: readonly string[],
  options: Options,
  changes: LimitChanges,
): Promise<void> {
  const { org, ifVersion } = options;
  const given = { ...changes, ...(ifVersion === undefined ? {} : { version: ifVersion }) };
  const answer = await withManagement(services, async (manage) => {
    const named = await subjectNamed(manage, words, org);
    const { word, inputOf } = subjects[named.kind];
    return manage[`update${word}Limits`]({ ...given, ...inputOf(named) } as never);
  });
  print(services, options, answer);
}

function print({ terminal, now_ms }: Services, { json }: JsonFlag, limits: SubjectLimitsShown): void {
  if (json) printJson(terminal, encode(SubjectLimitsShape, limits));
  else printSaid(terminal, limitsSaid(limits), now_ms(), false);
}

async function list(
  services: Services,
  manage: Management,
  { id }: NamedSubject,
  options: Options & { of: "keys" | "teams" | "people" },
): Promise<void> {
  const all = await allOf((page) => manage.findOrganizationLimits({ organization: id, of: options.of, ...page }));
  if (options.json)
    return printJson(
      services.terminal,
      all.map((one) => encode(SubjectLimitsShape, one)),
    );
  if (all.length === 0) return services.terminal.out(`There are no ${options.of}.\n`);
  printSaid(services.terminal, { pieces: [tablePiece(columns, all)] }, services.now_ms(), false);
}

const columns: Column<SubjectLimitsShown>[] = [
  { head: "ID", cell: (one) => one.subjectId, optional: true },
  { head: "NAME", cell: (one) => one.name ?? "", breaks: true },
  standingColumn,
  { head: "LIMITS", cell: (one) => inForceWords(one) || "none", breaks: true },
];

const inForceWords = ({ inForce }: SubjectLimitsShown) =>
  limitNames
    .flatMap((name) => (amountOf(inForce, name) === null ? [] : [`${name} ${inWords(inForce, name)}`]))
    .join(", ");

type InForce = SubjectLimitsShown["inForce"];
const amountOf = (inForce: InForce, name: LimitName) => inForce[camelName(name) as keyof InForce].limit;

function inWords(inForce: InForce, name: LimitName): string {
  const { limit, from } = inForce[camelName(name) as keyof InForce];
  const amount = limit === null ? "not limited" : typeof limit === "object" ? moneyWritten(limit) : grouped(limit);
  return from === null ? amount : `${amount} (${origins[from]})`;
}

const origins = {
  own: "its own",
  team: "from its team",
  organization: "from the organization",
  plan: "from the plan",
  raise: "temporary increase",
} as const;

/** The limits in words. Limits that are not set are also shown, because people look for them first. */
export function limitsSaid(limits: SubjectLimitsShown): Said {
  const {
    subject,
    subjectId,
    organization,
    name,
    keys,
    members,
    models,
    raises,
    inForce,
    standing,
    modelStandings,
    unmatchedModels,
    version,
  } = limits;
  const facts: Facts = [
    [subject, subject === "organization" ? `${organization} (${subjectId})` : `${name ?? ""} (${subjectId})`.trim()],
    ["in", subject === "organization" ? null : organization],
    ...limitNames.map((limit) => [limit, inWords(inForce, limit)] as const),
    ["each key gets", saidOf(keys)],
    ["each person gets", saidOf(members)],
    ...Object.entries(models).map(([pattern, value]) => [`for ${pattern}`, saidOf(value)] as const),
    ...raises.map(
      (raise) =>
        [raise.models === null ? "temporary increase" : `increase for ${raise.models}`, raiseWords(raise)] as const,
    ),
    ...standingFacts(standing),
    ...Object.keys(models).flatMap((pattern) => standingFacts(modelStandings[pattern] ?? null, pattern)),
    ["version", String(version)],
  ];
  const warnings = Object.entries(unmatchedModels).map(
    ([pattern, closest]) => `'${pattern}' ${unmatchedInWords(closest)}`,
  );
  return warnings.length === 0 ? facts : { pieces: [{ facts }, { warnings }] };
}

const saidOf = (value: LimitValue | null) => value && (valueInWords(value) ?? "nothing of its own");

const raiseWords = ({ limits, until, setBy }: SubjectLimitsShown["raises"][number]) =>
  `${valueInWords(limits)}, until ${instant(until)} (${setBy})`;

/** The limits, with only those model patterns that match one of the model's names. */
async function onlyFor(manage: Management, limits: SubjectLimitsShown, model: string): Promise<SubjectLimitsShown> {
  const all = (await manage.listModels()).data.map(({ id, aliases }) => [id, ...aliases]);
  const names = all.find((of) => of.includes(model)) ?? [model];
  const counts = (pattern: string) => names.some((name) => matchesModel(pattern, name));
  const counting = <Value>(of: Record<string, Value>) =>
    Object.fromEntries(Object.entries(of).filter(([pattern]) => counts(pattern)));
  return {
    ...limits,
    models: counting(limits.models),
    unmatchedModels: counting(limits.unmatchedModels),
    raises: limits.raises.filter(({ models }) => models === null || counts(models)),
  };
}

const showHelp = `
Examples:
  $ sluice limit show team research --org acme
  $ sluice limit show org acme --of people
  $ sluice limit show team research --model openai/gpt-5`;

const setHelp = `
Money is an amount of the service's currency for a session, a week or a month.
none: not limited here, whatever is inherited. inherit: nothing of its own.

Examples:
  $ sluice limit set team research month=50 --org acme
  $ sluice limit set team research month=10 --models 'openai/*'
  $ sluice limit set org acme week=5 --members
  $ sluice limit set key "build server" requests_per_minute=60 tokens_per_minute=200k
  $ sluice limit set ann week=none`;

const raiseHelp = `
Examples:
  $ sluice limit raise ann week=20 --until friday
  $ sluice limit raise team research month=80 --until 2026-12-24
  $ sluice limit raise ann --end`;
