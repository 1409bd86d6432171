/**
 * A coding agent that the command line can start, and the way in which the agent gets address, token and model without
 * a file being changed.
 */
import type { Access } from "../sign-in/access.ts";

export interface Launch {
  access: Access;
  model: AgentModel;
  /** Every model that the agent may use, including the chosen model. */
  models: readonly AgentModel[];
  /** The command that prints the token of this server, for agents that get their token from a command. */
  tokenCommand: readonly [string, ...string[]];
  /** The arguments for the agent, as the user typed them. */
  words: readonly string[];
  environment: Readonly<Record<string, string | undefined>>;
}

export interface AgentModel {
  id: string;
  /** The size of the model's context window; null: the server does not report it. */
  context_tokens: number | null;
}

export interface Started {
  words: string[];
  /** Variables to set on top of the user's own; undefined removes a variable. */
  environment: Record<string, string | undefined>;
}

export interface Agent {
  /** The name of the subcommand of `sluice`, and of the agent's program. */
  name: string;
  title: string;
  /** The command that installs the agent. */
  install: string;
  /** The catalog's name of the model that the user's arguments name; null: they name none. */
  modelIn(words: readonly string[]): string | null;
  start(launch: Launch): Started;
}

/** The value of an option that was typed as `--model X`, `--model=X` or `-m X`; the last one counts. */
export function optionIn(words: readonly string[], names: readonly string[]): string | null {
  const end = words.indexOf("--");
  const before = end < 0 ? words : words.slice(0, end);
  const found = before.flatMap((word, at) => {
    const [name = "", ...value] = word.split("=");
    if (!names.includes(name)) return [];
    return value.length > 0 ? [value.join("=")] : before.slice(at + 1, at + 2);
  });
  return found.at(-1) ?? null;
}
