/** `sluice claude`, `codex`, `opencode`: start a coding agent that is signed in. No file is changed. */
import type { Command } from "commander";
import type { CommandContext, Services } from "../services.ts";
import { accessTo } from "../sign-in/access.ts";
import { serverAt } from "../sign-in/commands.ts";
import type { Agent } from "./agent.ts";
import { claude } from "./claude.ts";
import { codex } from "./codex.ts";
import { agentModels, chosenModel } from "./models.ts";
import { opencode } from "./opencode.ts";
import { runToItsEnd } from "./process.ts";

const agents: readonly Agent[] = [claude, codex, opencode];
export const agentNames = agents.map(({ name }) => name);

export function addAgentCommands(program: Command, { services, exitWith }: CommandContext): void {
  for (const agent of agents)
    program
      .command(agent.name)
      .description(`start ${agent.title} with the models of a server, signed in as you`)
      .argument("[words...]", `arguments for ${agent.title}`)
      .option("--at <url>", "the server (default: where you signed in last)")
      .addHelpText("after", helpOf(agent))
      .action(async (words: string[], { at }: { at?: string }) => exitWith(await started(services, agent, words, at)));
}

/**
 * Puts `--` after the options of `sluice` itself, so that all later words, also options, are passed on to the agent.
 */
export function withoutAgentsOptions(typed: readonly string[]): string[] {
  const [name = "", ...words] = typed;
  if (!agentNames.includes(name)) return [...typed];
  let own = 0;
  while (/^--at=|^(--at|--help|-h)$/.test(words[own] ?? "")) own += words[own] === "--at" ? 2 : 1;
  const rest = words.slice(own);
  return [name, ...words.slice(0, own), "--", ...(rest[0] === "--" ? rest.slice(1) : rest)];
}

async function started(services: Services, agent: Agent, words: string[], at?: string): Promise<number> {
  const { environment, program } = services;
  const path = Bun.which(agent.name, { PATH: environment.PATH ?? "" });
  if (path === null)
    throw new Error(
      `${agent.title} is not installed: there is no '${agent.name}' in PATH. Install it: ${agent.install}`,
    );
  const access = await accessTo(services, at === undefined ? undefined : serverAt(at));
  const models = await agentModels(access);
  const model = chosenModel(models, agent.modelIn(words) ?? environment.SLUICE_MODEL?.trim() ?? null);
  const [command, ...more] = program;
  const launch = agent.start({
    access,
    model,
    models,
    words,
    environment,
    tokenCommand: [command, ...more, "token", access.url],
  });
  return runToItsEnd([path, ...launch.words], { ...environment, ...launch.environment });
}

function helpOf({ name, title, install }: Agent): string {
  return `
All words after our own options go to ${title} as they are, options too. The
model is the one that you name there, else that of SLUICE_MODEL, else the first
of the server's models that has tools. No file of ${title} is changed.

Sign in first: sluice login https://sluice.example
To install ${title}: ${install}

Examples:
  $ sluice ${name}
  $ sluice ${name} --at https://sluice.example
  $ sluice ${name} -- --help`;
}
