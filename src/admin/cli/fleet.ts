/** `sluice fleet`: the sum of all nodes, once, or again whenever it changes. */
import type { Command } from "commander";
import { counted, grouped } from "../../core/inference/amounts.ts";
import { decode, encode } from "../../core/schema/codec.ts";
import { untilAborted } from "../../core/time/clock.ts";
import { minute } from "../../core/time/written.ts";
import type { Column, Facts } from "../management/command.ts";
import { Fleet, type NearOrganization, type SeenEngine } from "../management/fleet-shape.ts";
import { verbNamed } from "../management/verbs.ts";
import { remoteServer, withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption } from "./option.ts";
import type { Services } from "./services.ts";
import { facts, table } from "./table.ts";
import { painted, type Terminal } from "./terminal.ts";

/** How often a database or a socket is read; a node that is reached over HTTP sends changes by itself. */
const every_ms = 1_000;

export function addFleetCommand(program: Command, { services }: CommandContext): void {
  program
    .command("fleet")
    .description("sum up all serving nodes: load, engines, and warnings")
    .option("--watch", "show it anew whenever it changes, until it is stopped")
    .addOption(jsonOption())
    .action(async ({ watch, json }: JsonFlag & { watch?: true }) => {
      const { terminal } = services;
      const show = (fleet: Fleet) =>
        terminal.out(json ? `${JSON.stringify(encode(Fleet, fleet))}\n` : described(terminal, fleet, watch === true));
      if (!watch) return show(await withManagement(services, (manage) => manage.getFleet()));
      const stopped = new AbortController();
      void services.untilStopped().then(() => stopped.abort());
      for await (const fleet of followed(services, stopped.signal)) show(fleet);
    });
}

async function* followed(services: Services, stopped: AbortSignal): AsyncGenerator<Fleet> {
  const server = remoteServer(services);
  if (server) {
    const { remoteAnswers } = await import("./remote-events.ts");
    for await (const json of remoteAnswers(server, verbNamed("getFleet"), stopped)) yield decode(Fleet, json);
    return;
  }
  while (!stopped.aborted) {
    yield await withManagement(services, (manage) => manage.getFleet());
    await untilAborted(stopped, every_ms);
  }
}

/** On a screen, a watched fleet replaces the output before it; elsewhere it follows it. */
function described(terminal: Terminal, fleet: Fleet, isWatched: boolean): string {
  const warnings = fleet.warnings.map((warning) => painted(terminal, "yellow", warning));
  const parts = [
    facts(terminal, factsOf(fleet)),
    enginesShown(terminal, fleet),
    fleet.nearest.length > 0 ? table(terminal, nearestColumns, fleet.nearest) : "",
    warnings.map((one) => `${one}\n`).join(""),
  ];
  const text = parts.filter((part) => part !== "").join("\n");
  if (!isWatched) return text;
  if (terminal.width === null) return `${text}\n`;
  return `\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`;
}

function factsOf(fleet: Fleet): Facts {
  const { nodes, versions, configurations } = fleet;
  const states: [string, number][] = [
    ["ready", nodes.ready],
    ["not ready", nodes.notReady],
    ["draining", nodes.draining],
    ["silent", nodes.silent],
  ];
  const present = states.filter(([state, count]) => count > 0 || state === "ready");
  const on = (some: readonly { nodes: number; name: string }[]) =>
    some.length === 0 ? null : some.map(({ name, nodes }) => `${name} on ${nodes}`).join(", ");
  return [
    ["nodes", present.map(([state, count]) => `${count} ${state}`).join(", ")],
    ["version", on(versions.map(({ version: name, nodes }) => ({ name, nodes })))],
    ["configuration", on(configurations.map(({ configuration: name, nodes }) => ({ name, nodes })))],
    ["tokens", `${grouped(fleet.inputTokensPerSecond)}/s in, ${grouped(fleet.outputTokensPerSecond)}/s out`],
    ["requests", `${grouped(fleet.requestsPerSecond)}/s, ${grouped(fleet.failuresPerSecond)}/s failed`],
    ["now", `${grouped(fleet.running)} running, ${grouped(fleet.waiting)} waiting`],
    [
      "first part",
      fleet.firstPartP50_ms === null || fleet.firstPartP95_ms === null
        ? null
        : `half within ${grouped(fleet.firstPartP50_ms)} ms, 95 % within ${grouped(fleet.firstPartP95_ms)} ms`,
    ],
  ];
}

const engineColumns: Column<SeenEngine>[] = [
  { head: "ENGINE", cell: ({ upstream, replica }) => (replica === null ? upstream : `${upstream} ${replica}`) },
  {
    head: "ROUTES",
    cell: ({ states }) => states.map(({ state, routes }) => `${routes} ${state}`).join(", "),
    breaks: true,
  },
  {
    head: "REQUESTS",
    cell: ({ requests, requests_max }) =>
      requests_max === null ? grouped(requests) : `${grouped(requests)} of ${grouped(requests_max)}`,
  },
  { head: "TOKENS", cell: ({ tokens }) => grouped(tokens), optional: true },
  { head: "WAITING", cell: ({ waiting }) => grouped(waiting) },
];

const nearestColumns: Column<NearOrganization>[] = [
  { head: "NEAREST TO A LIMIT", cell: ({ organization }) => organization },
  { head: "WINDOW", cell: ({ window }) => window },
  { head: "USED", cell: ({ usagePercent }) => `${usagePercent} %` },
  { head: "RESETS (UTC)", cell: ({ resetAt }) => minute(resetAt) ?? "" },
];

function enginesShown(terminal: Terminal, { engines, enginesLeftOut }: Fleet): string {
  if (engines.length === 0) return "";
  const rest = enginesLeftOut > 0 ? `and ${counted(enginesLeftOut, "engine")} more\n` : "";
  return table(terminal, engineColumns, engines) + rest;
}
