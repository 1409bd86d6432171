/** The fleet in words: the sums over its nodes, its engines, and the organizations nearest to a limit. */
import { counted, grouped } from "../../core/inference/money.ts";
import type { RouteState } from "../../core/routing/health.ts";
import { minute } from "../../core/time/written.ts";
import { type Column, type Facts, type Said, tablePiece } from "./command.ts";
import type { Fleet, NearOrganization, SeenEngine } from "./fleet-shape.ts";
import { windowWords } from "./standing.ts";

export function fleetSaid(fleet: Fleet): Said {
  const { engines, enginesLeftOut, nearest, warnings } = fleet;
  const rest = enginesLeftOut > 0 ? `and ${counted(enginesLeftOut, "engine")} more\n` : "";
  return {
    pieces: [
      { facts: factsOf(fleet) },
      ...(engines.length === 0 ? [] : [tablePiece(engineColumns, engines, rest)]),
      ...(nearest.length === 0 ? [] : [tablePiece(nearestColumns, nearest)]),
      { warnings },
    ],
  };
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

/** The words for the states of a circuit breaker. A closed breaker lets requests pass, which is shown as ready. */
const routeWords: Readonly<Partial<Record<RouteState, string>>> = {
  closed: "ready",
  "half-open": "on trial",
  open: "failing",
};

const engineColumns: Column<SeenEngine>[] = [
  { head: "ENGINE", cell: ({ upstream, replica }) => (replica === null ? upstream : `${upstream} ${replica}`) },
  {
    head: "ROUTES",
    cell: ({ states }) =>
      states.map(({ state, routes }) => `${routes} ${routeWords[state as RouteState] ?? state}`).join(", "),
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
  { head: "MODELS", cell: ({ models }) => models ?? "", optional: true },
  { head: "LIMIT OF", cell: ({ window }) => windowWords[window] },
  { head: "USED", cell: ({ usagePercent }) => `${usagePercent} %` },
  { head: "RESETS (UTC)", cell: ({ resetAt }) => minute(resetAt) ?? "" },
];
