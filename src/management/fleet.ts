/** The nodes that serve, as they report themselves: docs/operating.md, The fleet. */
import Type from "typebox";
import { grouped } from "../inference/amounts.ts";
import { minute } from "../time/written.ts";
import type { Column } from "./command.ts";
import { exampleNode, type Node, Nodes } from "./fleet-shape.ts";
import { nodesOf } from "./fleet-view.ts";
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

export function configurationsDiffer(nodes: readonly Pick<Node, "name" | "configurationDiffers">[]): string | null {
  const others = nodes.filter(({ configurationDiffers }) => configurationDiffers).map(({ name }) => name);
  if (others.length === 0) return null;
  const named = others.slice(0, named_max).join(", ");
  const more = others.length > named_max ? ` and ${others.length - named_max} more` : "";
  return `Configurations differ: ${named}${more} ${others.length === 1 ? "serves" : "serve"} another one than most nodes. Give all nodes the same sluice.yaml and reload them (SIGHUP).`;
}

const named_max = 5;

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
      takes: {},
      columns: nodeColumns,
      none: "No node serves.\n",
      after: configurationsDiffer,
      parts: "one",
    },
    act: async ({ fleet }) => ({ data: nodesOf(await fleet.listProcesses()), nextCursor: null }),
  }),
] as const;
