/**
 * `sluice upstream list` shows the current state of the engines. Only the processes of a running server know this
 * state, so the command asks them. `check` asks an engine itself. The other commands of the group call the management
 * interface.
 */
import type { Command } from "commander";
import { grouped } from "../../core/inference/money.ts";
import type { RouteView } from "../../core/routing/view.ts";
import type { Column } from "../management/command.ts";
import { answerOf, localSettings, urlHost } from "./local-server.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import type { CommandContext } from "./services.ts";
import { table } from "./table.ts";
import { addCheckCommand } from "./upstream-check.ts";

export function addUpstreamCommands(group: Command, context: CommandContext): void {
  addListCommand(group, context);
  addCheckCommand(group, context);
}

function addListCommand(group: Command, { services }: CommandContext): void {
  group
    .command("list")
    .description("list routes with their health, load, and queue, as the server knows them now")
    .option(
      "--url <url>",
      "operator's URL of the server (default: by --server, else by SLUICE_OPERATOR_HOST and SLUICE_OPERATOR_PORT)",
    )
    .addOption(jsonOption())
    .action(async ({ url, json }: JsonFlag & { url?: string }) => {
      const routes = await routesAt(url === undefined ? operatorOf(services.environment) : { url, isOwn: false });
      if (json) return printJson(services.terminal, routes);
      const has = { REPLICA: routes.some(({ replica }) => replica), WORKER: routes.some(({ worker }) => worker) };
      const listed = columns.filter(({ head }) => has[head as keyof typeof has] ?? true);
      services.terminal.out(table(services.terminal, listed, routes));
    });
}

/** A route as one process sees it: on a node of several workers, each worker reports its own view. */
type Route = RouteView & { worker?: number };

const columns: Column<Route>[] = [
  { head: "WORKER", cell: ({ worker }) => String(worker ?? "") },
  { head: "UPSTREAM", cell: (route) => route.upstream },
  { head: "REPLICA", cell: (route) => route.replica ?? "" },
  { head: "MODEL", cell: (route) => route.model },
  { head: "STATE", cell: (route) => route.state },
  { head: "REQUESTS", cell: (route) => grouped(route.requests) },
  { head: "TOKENS", cell: (route) => grouped(route.tokens), optional: true },
  { head: "WAITING", cell: (route) => grouped(route.waiting) },
];

async function routesAt({ url: origin, isOwn }: Operator): Promise<Route[]> {
  if (!URL.canParse(origin) || !/^https?:$/.test(new URL(origin).protocol)) throw new Error(`'${origin}' is not a URL`);
  const answer = await answerOf(new URL("/readyz?verbose", origin), isOwn).catch(() => null);
  if (!answer) throw new Error(`nothing answers at ${origin}`);
  const body = (await answer.json().catch(() => null)) as { routes?: unknown } | null;
  if (Array.isArray(body?.routes)) return body.routes as Route[];
  throw new Error(`${origin} names no routes: is it the operator's port (SLUICE_OPERATOR_PORT)?`);
}

/** The operator's port of a server. `isOwn`: the server is the one on this machine. */
interface Operator {
  url: string;
  isOwn: boolean;
}

/** The operator's port that `--server` names, else the port of the server on this machine. */
function operatorOf(environment: Readonly<Record<string, string | undefined>>): Operator {
  const url = environment.SLUICE_SERVER?.trim();
  if (url) return { url, isOwn: false };
  const { operator } = localSettings(environment);
  if (!operator) {
    throw new Error(
      "engines are shown on the operator's port alone: start the server with SLUICE_OPERATOR_PORT, and set it for this command too",
    );
  }
  const scheme = operator.tls === "on" ? "https" : "http";
  return { url: `${scheme}://${urlHost(operator.host)}:${operator.port}`, isOwn: true };
}
