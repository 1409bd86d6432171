/**
 * THE MODULE CLI: the commands. `run` takes the words of a command line and returns the exit code.
 *
 * 0: success. 1: failure, with a one-line reason on stderr. 2: usage error. With `--json`, stdout holds one JSON value
 * and nothing else, and no prompt appears. Commands act through `Management` (src/admin/management/verbs.ts) and
 * `Services`. connect.ts decides whether these reach a server over HTTP, a running server's socket, or the database.
 */
import { type Command, CommanderError } from "commander";
import { addAgentCommands, agentNames, withoutAgentsOptions } from "./agents/commands.ts";
import { addApplyCommand } from "./apply.ts";
import { addAuditCommands } from "./audit.ts";
import { addCompletionCommand } from "./completion.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addExportCommand } from "./export.ts";
import { addHealthcheckCommand } from "./healthcheck.ts";
import { addInitCommand } from "./init.ts";
import { addLimitCommands } from "./limit.ts";
import { addPersonTryCommand } from "./person-try.ts";
import { addServerCommands } from "./server.ts";
import type { CommandContext, Services } from "./services.ts";
import { addSignInCommands } from "./sign-in/commands.ts";
import { oneLine } from "./terminal.ts";
import { addTryCommand } from "./try.ts";
import { TypedCommand } from "./typed-command.ts";
import { addUpstreamCommands } from "./upstream.ts";
import { addVerbGroup, addWordCommand } from "./verb-command.ts";

/** Runs a command line, and returns the exit code. `words` is what follows the program's name. Never throws. */
export async function run(words: readonly string[], services: Services): Promise<number> {
  const { terminal } = services;
  let code = 0;
  try {
    // Only `--version` shows the schema, which is read from the migrations: other commands need not load them.
    const isVersion = words.includes("--version") || words.includes("-V");
    const version = isVersion ? `${services.version} (schema ${await services.schema()})` : services.version;
    const program = commands({ ...services, version }, (exitCode) => {
      code = exitCode;
    });
    const [first, ...others] = words;
    // Commander's own `help` command takes only one word, but `help team create` has two. So `--help` is used instead.
    const typed = first === "help" && others.length > 1 ? [...others, "--help"] : withoutAgentsOptions(words);
    await program.parseAsync(typed, { from: "user" });
    return code;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    terminal.err(`sluice: ${oneLine(thrown instanceof Error ? thrown.message : String(thrown)) || "failed"}\n`);
    if (services.environment.SLUICE_DEBUG && thrown instanceof Error) terminal.err(`${thrown.stack}\n`);
    return 1;
  }
}

/** All commands, in the order of the help. */
export function commands(of: Services, exitWith: (code: number) => void): Command {
  const environment = { ...of.environment };
  const services: Services = { ...of, environment };
  const { terminal } = services;
  const program = new TypedCommand("sluice")
    .description("A model inference service that your team runs itself.")
    .exitOverride()
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      getOutHelpWidth: () => terminal.width ?? 100,
      getErrHelpWidth: () => terminal.width ?? 100,
      getOutHasColors: () => terminal.color,
      getErrHasColors: () => terminal.color,
    })
    .version(services.version, "-V, --version", "print the version, the commit and the schema")
    .option("--server <url>", "administer another node, through its operator's port (or SLUICE_SERVER)")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .addHelpText("after", generalExamples);
  program.hook("preAction", (_, command) => {
    const { server } = program.opts<{ server?: string }>();
    if (server === undefined) return;
    const words = namesTo(command);
    const [first = command.name()] = words;
    const local = [first, words.join(" ")].find((name) => onTheNode.includes(name));
    if (local) command.error(`error: ${local} works on the node itself, without --server`);
    if (forClients.includes(first)) command.error(`error: ${first} calls no operator's port and takes no --server`);
    environment.SLUICE_SERVER = server;
  });
  const context: CommandContext = { services, exitWith };
  addServerCommands(program, context);
  addInitCommand(program, context);
  const group = (name: string, description: string) => addVerbGroup(program, context, name, description);
  group("org", "manage organizations and their policies for keys").alias("organization");
  group("key", "manage API keys");
  group("team", "manage teams: groups of an organization's keys");
  addLimitCommands(program, context);
  addWordCommand(program, context, "search");
  group("model", "show the models that are served");
  group("plan", "show the plans in force, and manage those outside sluice.yaml");
  addUpstreamCommands(group("upstream", "show, check, drain and resume engines"), context);
  group("config", "show the configuration in force");
  group("node", "show the nodes that serve");
  addWordCommand(program, context, "fleet");
  group("usage", "show, report, check, and adjust usage");
  group("request", "look up inference requests");
  addAuditCommands(group("audit", "read the audit log of administrative actions"), context);
  group("notice", "manage where usage, expiring keys and failures are told");
  group("operator", "manage operators, who may administer over HTTP");
  addPersonTryCommand(group("person", "show, suspend and forget people who signed in through an issuer"), context);
  group("membership", "give people memberships by hand, and take them");
  group("invitation", "invite people into organizations before their first sign-in");
  addApplyCommand(program, context);
  addExportCommand(program, context);
  addSignInCommands(program, context);
  addAgentCommands(program, context);
  addTryCommand(program, context);
  addWordCommand(program, context, "console");
  addDoctorCommand(program, context);
  addHealthcheckCommand(program, context);
  addCompletionCommand(program, context);
  return program;
}

/** Commands that work only on the machine on which they run. */
const onTheNode = [
  "serve",
  "simulator",
  "migrate",
  "openapi",
  "init",
  "console",
  "doctor",
  "healthcheck",
  "completion",
  "upstream check",
  "person try",
];

/** Commands that call the API for clients, and not management. */
const forClients = ["login", "logout", "token", ...agentNames];

/** The words of a command, without the program's name. */
function namesTo(command: Command): string[] {
  return command.parent ? [...namesTo(command.parent), command.name()] : [];
}

const generalExamples = `
Examples:
  $ sluice serve
  $ sluice org create acme --plan pro
  $ sluice key create --org acme --name "build server" --scopes inference:create
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 1h
  $ sluice --server https://sluice.example:9090 org list

With --server or SLUICE_SERVER, commands act on another node and need an operator
token in SLUICE_OPERATOR_TOKEN, or in a file that SLUICE_OPERATOR_TOKEN_FILE names.

Exit codes: 0 success; 1 failure, with a one-line reason on stderr; 2 usage
error. For help with a command, run: sluice help <command>`;
