/** The schemas of the fleet's view: the nodes, their load figures, and the engines as the nodes see them. */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import { exampleOf } from "../store/example.ts";
import { id, instant } from "../store/shapes.ts";
import { examples, partOf } from "./shapes.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });
const rate = (description: string) => Type.Number({ minimum: 0, description });
const wait_ms = (description: string) => nullable(Type.Integer({ minimum: 0, description }));

/**
 * The schema of load figures, of a node or of the fleet. Rates count the requests that ended in the last half minute.
 */
export const figures = {
  input_tokens_per_second: rate("Tokens that requests brought, the cached ones among them."),
  output_tokens_per_second: rate("Tokens of answers."),
  requests_per_second: rate("Admitted requests that ended."),
  failures_per_second: rate("Those of them that failed."),
  running: count("Requests that run."),
  waiting: count("Requests that wait for room at an engine."),
  first_part_p50_ms: wait_ms("Half of the answers began within this time. Null: none began."),
  first_part_p95_ms: wait_ms("95 % of the answers began within this time. Null: none began."),
};

export const SeenEngine = Type.Object(
  {
    upstream: Type.String({ description: "The name of the upstream in the configuration." }),
    replica: nullable(Type.String({ description: "An address, where the name of the upstream has several." })),
    states: Type.Array(
      Type.Object({
        state: Type.String({ description: "As in the metric `upstream_routes`." }),
        routes: count("How many."),
      }),
      { description: "Routes to it by state, over all processes: each judges for itself." },
    ),
    requests: count("In flight."),
    tokens: count("Of the requests in flight."),
    waiting: count("Requests that wait for room there."),
    requests_max: nullable(
      count("The most requests that all processes together may have there now (`concurrent_max`). Null: no limit."),
    ),
  },
  { $id: "SeenEngine" },
);
export type SeenEngine = Value<typeof SeenEngine>;

const engineFields = {
  engines: Type.Array(SeenEngine, { description: "By name." }),
  engines_left_out: count("Engines beyond those that a node reports."),
};

const nodeStates = ["ready", "not_ready", "draining", "silent"] as const;
export type NodeState = (typeof nodeStates)[number];

export const Node = Type.Object(
  {
    name: Type.String({ description: "Its host and port." }),
    id: Type.String({ description: "A UUID of its start." }),
    state: oneOf(nodeStates, { description: "`silent`: it has not reported for ten seconds." }),
    problems: Type.Array(Type.String(), { description: "What keeps it from exact admission." }),
    version: Type.String(),
    configuration: Type.String({ description: "The hash of the configuration in force." }),
    configuration_differs: Type.Boolean({ description: "Whether most nodes serve another one." }),
    started_at: instant("When it was started."),
    certificate_expires_at: nullable(
      instant("When the certificate that it shows to clients expires. Null: it shows none."),
    ),
    silent_ms: count("The time since its last report."),
    workers: count("The processes that report."),
    workers_wanted: count("The processes that it should have."),
    ...figures,
    ...engineFields,
  },
  { $id: "Node" },
);
export type Node = Value<typeof Node>;
export const Nodes = partOf(Node, "Nodes");

export const NearOrganization = Type.Object(
  {
    organization: Type.String({ description: "Its slug." }),
    organization_id: id("org"),
    models: nullable(Type.String({ description: "The models that the limit is for. Null: all." })),
    window: oneOf([...windowKinds], { description: "The window of whose limit most is used." }),
    usage_percent: Type.Number({ minimum: 0, description: "Of that limit." }),
    reset_at: instant("When that window ends."),
  },
  { $id: "NearOrganization" },
);
export type NearOrganization = Value<typeof NearOrganization>;

export const Fleet = Type.Object(
  {
    nodes: Type.Object(
      {
        ready: count("How many."),
        not_ready: count("How many."),
        draining: count("How many."),
        silent: count("How many."),
      },
      { description: "By state." },
    ),
    versions: Type.Array(Type.Object({ version: Type.String(), nodes: count("How many.") })),
    configurations: Type.Array(Type.Object({ configuration: Type.String(), nodes: count("How many.") }), {
      description: "The hashes of the configurations in force. More than one is a warning.",
    }),
    warnings: Type.Array(Type.String(), { description: "Warnings, as text." }),
    ...figures,
    ...engineFields,
    nearest: Type.Array(NearOrganization, {
      description: "The organizations that have used most of a limit, at most five, as of the last ten seconds.",
    }),
  },
  { $id: "Fleet" },
);
export type Fleet = Value<typeof Fleet>;

export const exampleNode = exampleOf(Node, {
  name: "gateway-1:8080",
  id: "0193a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b",
  problems: [],
  version: "0.2.0 (0123456789ab)",
  configuration: "7d9f3c1a2b4e5f60",
  silent_ms: 800,
  workers: 1,
  workersWanted: 1,
  inputTokensPerSecond: 5200.5,
  outputTokensPerSecond: 910.2,
  requestsPerSecond: 3.1,
  running: 42,
  firstPartP50_ms: 310,
  firstPartP95_ms: 1240,
  engines: [
    {
      upstream: "gpu-1",
      replica: null,
      states: [{ state: "closed", routes: 2 }],
      requests: 42,
      tokens: 180_000,
      waiting: 0,
      requests_max: 64,
    },
  ],
});

export const exampleFleet = exampleOf(Fleet, {
  nodes: { ready: 3, notReady: 0, draining: 0, silent: 0 },
  versions: [{ version: exampleNode.version, nodes: 3 }],
  configurations: [{ configuration: exampleNode.configuration, nodes: 3 }],
  warnings: [],
  inputTokensPerSecond: 15_600.4,
  outputTokensPerSecond: 2730.9,
  requestsPerSecond: 9.2,
  running: 126,
  firstPartP50_ms: 310,
  firstPartP95_ms: 1240,
  engines: exampleNode.engines,
  nearest: [
    {
      organization: "acme",
      organizationId: examples.organization,
      models: null,
      window: "week",
      usagePercent: 92.4,
      resetAt: examples.at,
    },
  ],
});
