/** The nodes that serve, as they report themselves: docs/operating.md, The fleet. */
import Type from "typebox";
import { grouped } from "../../core/inference/money.ts";
import { minute } from "../../core/time/written.ts";
import type { Column } from "./command.ts";
import { exampleFleet, exampleNode, Fleet, type Node, Nodes } from "./fleet-shape.ts";
import { fleetOf, nodesOf, warningsOf } from "./fleet-view.ts";
import { fleetSaid } from "./fleet-words.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Fleet");

const nodeColumns: Column<Node>[] = [
  { head: "NODE", cell: ({ name }) => name },
  { head: "STATE", cell: stateOf, breaks: true },
  { head: "SINCE (UTC)", cell: ({ startedAt }) => minute(startedAt) ?? "" },
  { head: "RUNNING", cell: ({ running }) => grouped(running) },
  { head: "WAITING", cell: ({ waiting }) => grouped(waiting) },
  {
    head: "TOKENS/S",
    cell: ({ inputTokensPerSecond, outputTokensPerSecond }) =>
      grouped(Math.round(inputTokensPerSecond + outputTokensPerSecond)),
  },
  {
    head: "CONFIGURATION",
    cell: ({ configuration, configurationDiffers }) => `${configuration}${configurationDiffers ? " differs" : ""}`,
  },
  { head: "WORKERS", cell: ({ workers, workersWanted }) => `${workers}/${workersWanted}`, optional: true },
  { head: "VERSION", cell: ({ version }) => version, optional: true },
];

function stateOf({ state, silent_ms, problems }: Node): string {
  if (state === "silent") return `silent for ${Math.round(silent_ms / 1000)} s`;
  return state === "not_ready" ? `not ready: ${problems.join("; ")}` : state;
}

export const fleetVerbs = [
  verb({
    name: "listNodes",
    route: "GET /nodes",
    summary: "List nodes",
    description:
      "The nodes that use this database, the one that runs longest first. A node that does not report any more is `silent`, and leaves the list after five minutes.",
    roles: ["admin", "viewer"],
    faults: [],
    takes: Type.Object({}),
    answers: Nodes,
    example: { takes: {}, answer: { data: [exampleNode], nextCursor: null } },
    command: {
      words: "node list",
      description: "list the nodes that serve, with their state and load",
      columns: nodeColumns,
      none: "No node serves.\n",
      after: (nodes, now_ms) => warningsOf(nodes, now_ms).join("\n") || null,
    },
    act: async ({ fleet }) => ({ data: nodesOf(await fleet.listProcesses()), nextCursor: null }),
  }),
  verb({
    name: "getFleet",
    route: "GET /fleet",
    summary: "Sum up the fleet",
    description:
      "All nodes together: their load, their view of the engines, and warnings. With `format=events`, the answer is a stream of updates. Silent nodes are left out of all sums.",
    roles: ["admin", "viewer"],
    faults: [],
    takes: Type.Object({}),
    answers: Fleet,
    example: { takes: {}, answer: exampleFleet },
    command: {
      words: "fleet",
      description: "sum up all serving nodes: load, engines, and warnings",
      says: fleetSaid,
    },
    live: { event: "fleet", every_ms: 600 },
    act: async ({ fleet, nearest, now_ms }) => {
      const [reports, nearestOrganizations] = await Promise.all([fleet.listProcesses(), nearest()]);
      return fleetOf(reports, nearestOrganizations, now_ms());
    },
  }),
] as const;
