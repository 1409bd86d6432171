/**
 * The questions that a command asks on a terminal before it calls its verb: for values that are missing, and for a
 * confirmation.
 */
import type { Command } from "commander";
import type { Confirmation, Flag, FlagQuestion } from "../management/command.ts";
import { ManagementError } from "../management/error.ts";
import { allOf, type Part } from "../management/page.ts";
import type { Verb } from "../management/verb.ts";
import { type Management, verbs } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import { type JsonFlag, missing } from "./option.ts";
import type { Services } from "./services.ts";
import type { Given } from "./verb-option.ts";

/**
 * Asks for the required values that were not typed, and adds them. Without an interactive terminal, a missing value is
 * a usage error.
 */
export async function askMissing(services: Services, command: Command, verb: Verb, given: Given): Promise<Given> {
  const open = Object.entries((verb.command!.takes ?? {}) as Record<string, Flag>).filter(
    ([member, { asks }]) => asks && given[member] === undefined,
  );
  const mayAsk = services.terminal.interactive && !command.opts<JsonFlag>().json;
  const answers: Given = {};
  for (const [member, { flag, asks }] of open) {
    if (!mayAsk) missing(command, flag.startsWith("-") ? flag.split(" ")[0]! : flag.slice(1, -1).toUpperCase());
    answers[member] = await asked(services, asks!, verb, member);
  }
  return { ...answers, ...given };
}

async function asked(services: Services, { message, from }: FlagQuestion, verb: Verb, member: string): Promise<string> {
  if (!from) {
    return (await services.prompts()).text({ message, check: (text) => problemOf(verb, member, text) });
  }
  const items = await withManagement(services, (manage) =>
    allOf((page) => (manage[from.list.name as keyof Management] as unknown as List)(page)),
  );
  const options = items.flatMap((item) => from.option(item) ?? []);
  if (options.length === 0) throw new Error(from.none);
  return (await services.prompts()).select({ message, options });
}

type List = (page: object) => Promise<Part<unknown>>;

/** The message with which the verb refuses the text as the value of the member; null: the verb takes the text. */
function problemOf(verb: Verb, member: string, text: string): string | null {
  try {
    verb.take({ ...verb.example.takes, [member]: text });
    return null;
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown.message;
    throw thrown;
  }
}

/**
 * Asks for the confirmation. Throws an Error unless the answer is yes. While the question waits for an answer, no
 * connection to the data is open, because an open embedded database would block other commands.
 */
export async function confirm(
  services: Services,
  { json }: JsonFlag,
  { of, question, refusal, needsYes }: Confirmation,
  given: Given,
): Promise<void> {
  if (json || !services.terminal.interactive) {
    if (needsYes !== undefined) throw new Error(needsYes);
    return;
  }
  const { input } = verbs.find(({ name }) => name === of.name)!;
  const named = Object.fromEntries(Object.entries(given).filter(([member]) => member in input.properties));
  const found = await withManagement(services, (manage) => (manage[of.name as keyof Management] as Read)(named));
  if (!(await (await services.prompts()).confirm(question(found, given)))) throw new Error(refusal);
}

type Read = (given: Given) => Promise<unknown>;
