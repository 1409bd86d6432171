// The scenarios as data: requests, load and targets, and the resulting rows of the table with their budgets.

import { agentBody, type BodyOptions, smallBody } from "../agent-body.ts";
import { type Asked, type Behaviour, type Protocol, protocols } from "./asks.ts";
import { percentile } from "./percentile.ts";

export const names = {
  passed: "passed on",
  /** The same process as `passed`, which only passes requests on, but with unstreamed requests. */
  whole: "passed on, asked whole",
  nginx: "nginx",
  envoy: "Envoy",
  postgres: "Postgres + Redis",
  unlimited: "limits off",
  /** The node on Postgres and Redis, with a setting that it never pauses its reading of engines' sockets. */
  unpaused: "without pauses",
  /**
   * The node's own engine client and event streams (floor.ts), which pass bytes on without a key, a ledger or parsing.
   */
  floor: "handed on uncounted",
  embedded: "embedded",
  /** The node on Postgres and Redis with two worker processes, which share the port. */
  workers: "two workers",
  /** An older executable, also on Postgres and Redis. */
  before: "before",
  portkey: "Portkey",
  litellm: "LiteLLM",
  /** Busbar with a key, a budget and limits, which stores its usage records in memory. */
  busbar: "Busbar",
} as const;
/** The targets that are measured in special rows only. */
const special: readonly string[] = [names.workers, names.whole, names.unpaused, names.floor];
const everybody = Object.values(names).filter((name) => !special.includes(name));
const both = [names.passed, names.postgres, names.before];

/** The figures of one target in one round. */
export interface Slice {
  requests: number;
  /** The number of tokens in all responses. */
  tokens: number;
  cpu_us: number;
  postgres_us: number;
  redis_us: number;
  latencies_ms: number[];
  /** The times to the first token. */
  marks_ms: number[];
  /** The times between two reads of a stream, after the first token. */
  gaps_ms: number[];
  probes_ms: number[];
  residentMost_bytes: number;
  /** The number of requests that were not sent because too many were in flight, or that were refused with 503. */
  leftOut: number;
}

export interface Row {
  id: string;
  name: string;
  unit: "µs" | "ms" | "MB" | "/s";
  of(slice: Slice): number;
  /** The target with which the value is compared, and the kind of comparison; null if there is none. */
  compared: { with: string; as: "ratio" | "added" } | null;
  /** The limit for the result of the comparison, or for the value if there is no comparison. */
  budget: number | null;
}

export type Load =
  | { kind: "closely"; connections: number; length_s: number }
  | { kind: "steadily"; rate: number; length_s: number }
  | { kind: "spread"; count: number; over_s: number };

/** The options of a body for any kind of request. */
export type AskOptions = Omit<BodyOptions, "protocol"> & { protocol: Asked };

export interface Scenario {
  id: string;
  caller: Asked;
  engine: Asked;
  behaviour: Behaviour;
  isStreamed: boolean;
  body(text: string, options: AskOptions): string;
  cap: number | null;
  load: Load;
  rounds: number;
  targets: readonly string[];
  /** The path of a request that is sent to this service 20 times a second during the scenario. Null: none is sent. */
  probe: string | null;
  /** Whether the scenario is run with `--quick`. */
  isQuick: boolean;
  rows: readonly Row[];
}

const short: Behaviour = { wait_ms: 0, tokens: 16, every_ms: 0, inputTokens: 20 };
const late: Behaviour = { ...short, wait_ms: 20 };
const agent: Behaviour = { ...short, inputTokens: 16_000 };
/**
 * A response of typical length to an agent. With 16 tokens, it would show nothing about the engine's speed, because
 * most of its time passes before the first token.
 */
const agentAnswer: Behaviour = { ...agent, tokens: 128 };
const agentStream: Behaviour = { wait_ms: 0, tokens: 100, every_ms: 10, inputTokens: 16_000 };
const stream: Behaviour = { wait_ms: 20, tokens: 100, every_ms: 25, inputTokens: 20 };
const thousand: Behaviour = { wait_ms: 20, tokens: 40, every_ms: 100, inputTokens: 20 };
const fiveThousand: Behaviour = { wait_ms: 20, tokens: 12, every_ms: 500, inputTokens: 20 };
const large: Behaviour = { ...short, inputTokens: 250_000 };
export const warmStream: Behaviour = { wait_ms: 0, tokens: 50, every_ms: 1, inputTokens: 20 };

/** The behaviour for an embedding request, whose vector counts as one token. */
export const embedding: Behaviour = { ...short, tokens: 1 };

export const behaviours = [
  short,
  late,
  agent,
  agentAnswer,
  agentStream,
  stream,
  thousand,
  fiveThousand,
  large,
  warmStream,
];

const passed = (as: "ratio" | "added") => ({ with: names.passed as string, as });
const asChat = { caller: "chat", engine: "chat" } as const;
/**
 * The number of rounds with `--quick`, and for rows of latencies: of many rounds, the best one would show a 99th
 * percentile that is lower than usual.
 */
const few_rounds = 3;
/**
 * The number of rounds for rows of CPU time: a shared machine is slow for seconds at a time, so each target needs many
 * rounds until one is undisturbed.
 */
const many_rounds = 6;
const ordinary = {
  isStreamed: false,
  body: smallBody,
  cap: 256,
  rounds: many_rounds,
  probe: null,
  isQuick: true,
} as const;

const perRequest = (slice: Slice) => slice.cpu_us / slice.requests;
const perToken = (slice: Slice) => slice.cpu_us / slice.tokens;
const cpuRow = (id: string, name: string, of: Row["of"], budget: number | null): Row => ({
  ...{ id, name, unit: "µs", of, compared: passed("ratio"), budget },
});

function small(protocol: Protocol): Scenario {
  const id = `small-${protocol}`;
  const isChat = protocol === "chat";
  const limits: Row = {
    ...{ id: "limits", name: "limits on, against off: CPU a small request", unit: "µs", of: perRequest },
    ...{ compared: { with: names.unlimited, as: "ratio" }, budget: 1.15 },
  };
  return {
    ...{ ...ordinary, id, caller: protocol, engine: protocol, behaviour: short },
    load: { kind: "closely", connections: 64, length_s: isChat ? 1.5 : 1 },
    targets: isChat ? everybody : [...both, names.embedded],
    rows: [cpuRow(id, `CPU a small request, ${protocol}`, perRequest, 3), ...(isChat ? [limits] : [])],
  };
}

/**
 * A small embedding request. Its row is compared with `small-chat`: its cost above the bare pass-through should be no
 * higher than that of a chat request.
 */
const smallEmbedding: Scenario = {
  ...{ ...ordinary, id: "small-embeddings", caller: "embeddings", engine: "embeddings", behaviour: embedding },
  body: (input, { model }) => JSON.stringify({ model, input }),
  load: { kind: "closely", connections: 64, length_s: 1.5 },
  targets: [names.passed, names.postgres],
  rows: [cpuRow("small-embeddings", "CPU a small embedding of 256 numbers", perRequest, 3)],
};

function agentWhole(protocol: Protocol): Scenario {
  const id = `agent-${protocol}`;
  return {
    ...{ ...ordinary, id, caller: protocol, engine: protocol, behaviour: agent, body: agentBody },
    load: { kind: "closely", connections: 32, length_s: 1.2 },
    targets: protocol === "chat" ? everybody.filter((name) => name !== names.unlimited) : both,
    isQuick: protocol === "chat",
    rows: [cpuRow(id, `CPU a 66 KB agent request, asked whole, ${protocol}`, perRequest, 2.5)],
  };
}

/**
 * An agent's request with the limit on output tokens that agents send. Because it is above `unstreamed_tokens_max`, the
 * node decides by its engine's speed whether to ask the engine for a stream.
 */
const agentCapped: Scenario = {
  ...{ ...agentWhole("chat"), id: "agent-capped", behaviour: agentAnswer, cap: 4096, targets: both, isQuick: false },
  rows: [
    cpuRow(
      "agent-capped",
      "CPU a 66 KB agent request with a cap of 4,096, 128 tokens, not streamed, chat",
      perRequest,
      null,
    ),
  ],
};

/**
 * The rows for an agent's request. The first one compares it with the pass-through of the same request, the second one
 * with the cheapest pass-through, which is unstreamed.
 */
function agentRows(id: string, name: string): Row[] {
  return [
    cpuRow(id, name, perRequest, 2.5),
    {
      ...cpuRow(`${id}-whole`, `${name}, against asked whole`, perRequest, 6),
      compared: { with: names.whole, as: "ratio" },
    },
  ];
}

/**
 * An agent's request in the format of real agents. The response is short, so the row measures the cost of the request
 * and not that of streamed events.
 */
function agentSent(protocol: Protocol): Scenario {
  const id = `agent-sent-${protocol}`;
  const isChat = protocol === "chat";
  const others = everybody.filter((name) => name !== names.unlimited && name !== names.embedded);
  return {
    ...{ ...ordinary, id, caller: protocol, engine: protocol, behaviour: agent, body: agentBody, isStreamed: true },
    load: { kind: "closely", connections: 32, length_s: 1.2 },
    targets: [names.whole, ...(isChat ? others : both)],
    isQuick: isChat,
    rows: agentRows(id, `CPU a 66 KB agent request, streamed, ${protocol}`),
  };
}

const agentAsStreamed: Scenario = {
  ...{ ...ordinary, ...asChat, id: "agent-streamed", behaviour: agentStream, body: agentBody, cap: null, rounds: 2 },
  load: { kind: "closely", connections: 128, length_s: 2 },
  targets: [names.whole, ...both],
  isQuick: false,
  rows: agentRows("agent-streamed", "CPU a 66 KB agent request without a cap (asked streamed)"),
};

function gapRow(id: string, streams: string, share: number): Row {
  const percent = `p${share * 100}`;
  return {
    ...{ id: `${id}-${percent}`, name: `gap in a stream of 25 ms a token, ${streams}, ${percent}`, unit: "ms" },
    ...{ of: (slice) => percentile(slice.gaps_ms, share), compared: passed("added"), budget: null },
  };
}

function events(caller: Protocol, engine: Protocol): Scenario {
  const id = `events-${caller}-${engine}`;
  const isSame = caller === engine;
  const isFirst = isSame && caller === "chat";
  const way = isSame ? `${caller} to ${engine}` : `${caller} to ${engine}, translated`;
  const first: Row = {
    ...{ id: "first-token", name: "time to first token, 256 streams, p50", unit: "ms", budget: 1.5 },
    ...{ of: (slice: Slice) => percentile(slice.marks_ms, 0.5), compared: passed("added") },
  };
  return {
    ...{ ...ordinary, id, caller, engine, behaviour: stream, isStreamed: true },
    load: { kind: "spread", count: 256, over_s: 1.25 },
    rounds: few_rounds,
    targets: isFirst ? everybody.filter((name) => name !== names.unlimited) : both,
    isQuick: isFirst || (caller === "messages" && engine === "chat"),
    rows: [
      cpuRow(id, `CPU a streamed event, 256 streams, ${way}`, perToken, isSame ? 1.4 : 2),
      ...(isFirst ? [first, gapRow("gap", "256 streams", 0.5), gapRow("gap", "256 streams", 0.99)] : []),
    ],
  };
}

/**
 * Streams whose requests arrive in the same millisecond: starting a stream must not delay the tokens of earlier
 * streams.
 */
const together: Scenario = {
  ...{ ...ordinary, ...asChat, id: "together", behaviour: stream, isStreamed: true },
  load: { kind: "spread", count: 256, over_s: 0.001 },
  targets: both,
  rows: [
    cpuRow("together", "CPU a streamed event, 256 streams that start together", perToken, null),
    { ...gapRow("together-gap", "256 streams that start together", 0.99), budget: 15 },
  ],
};

function steady(rate: number, target: string, budgets: { p50: number; p99: number | null }): Scenario {
  const row = (share: number, budget: number | null): Row => ({
    id: `latency-${rate}-p${share * 100}`,
    name: `${rate} requests a second, engine of 20 ms: p${share * 100}`,
    ...{ unit: "ms", of: (slice) => percentile(slice.latencies_ms, share), compared: passed("added"), budget },
  });
  return {
    ...{ ...ordinary, ...asChat, id: `latency-${rate}`, behaviour: late, rounds: few_rounds },
    load: { kind: "steadily", rate, length_s: 2 },
    targets: target === names.postgres ? both : [names.passed, target],
    isQuick: target === names.postgres,
    rows: [row(0.5, budgets.p50), row(0.99, budgets.p99)],
  };
}

/** The usual load of a node: few concurrent requests, each alone in its batch of ledger commands. */
const sparseClosely: Scenario = {
  ...{ ...ordinary, ...asChat, id: "sparse-4", behaviour: short },
  load: { kind: "closely", connections: 4, length_s: 1.5 },
  targets: everybody.filter((name) => name !== names.unlimited && name !== names.embedded),
  rows: [cpuRow("sparse-4", "CPU a small request, 4 connections", perRequest, null)],
};

/**
 * A single client, and an engine that responds immediately: then waiting for more requests to batch only adds latency.
 */
const alone: Scenario = {
  ...{ ...sparseClosely, id: "sparse-1", load: { kind: "closely", connections: 1, length_s: 1.5 } },
  rows: [
    cpuRow("sparse-1", "CPU a small request, 1 connection", perRequest, null),
    {
      ...{ id: "sparse-1-p50", name: "1 connection, engine of 0 ms: p50", unit: "ms", budget: 1.5 },
      ...{ of: (slice) => percentile(slice.latencies_ms, 0.5), compared: passed("added") },
    },
  ],
};

const sparseSteadily: Scenario = {
  ...{ ...sparseClosely, id: "sparse-100", behaviour: late, rounds: few_rounds },
  load: { kind: "steadily", rate: 100, length_s: 3 },
  rows: [
    cpuRow("sparse-100", "CPU a small request, 100 a second", perRequest, null),
    ...[0.5, 0.99].map(
      (share): Row => ({
        ...{ id: `sparse-100-p${share * 100}`, name: `100 requests a second, engine of 20 ms: p${share * 100}` },
        ...{
          unit: "ms",
          of: (slice) => percentile(slice.latencies_ms, share),
          compared: passed("added"),
          budget: null,
        },
      }),
    ),
  ],
};

function streams(count: number, behaviour: Behaviour, over_s: number, budget: number): Scenario {
  const of = (slice: Slice) => slice.residentMost_bytes / 1e6;
  const name = `${count} streams at once, all whole: memory`;
  return {
    ...{ ...ordinary, ...asChat, id: `streams-${count}`, behaviour, isStreamed: true },
    load: { kind: "spread", count, over_s },
    rounds: 1,
    targets: both,
    isQuick: false,
    rows: [{ id: `streams-${count}`, name, unit: "MB", of, compared: null, budget }],
  };
}

/** Two workers on one core: this measures the cost of the second process, and not its benefit. */
const workers: Scenario = {
  ...{ ...ordinary, ...asChat, id: "workers", behaviour: short, isQuick: false },
  load: { kind: "closely", connections: 64, length_s: 2 },
  targets: [names.postgres, names.workers],
  rows: [
    {
      ...{ id: "workers", name: "CPU a small request, 64 connections: two workers, against one process", unit: "µs" },
      ...{ of: perRequest, compared: { with: names.postgres, as: "ratio" }, budget: 1.1 },
    },
  ],
};

const largeBodies: Scenario = {
  ...{ ...ordinary, ...asChat, id: "large", behaviour: large, rounds: 2 },
  body: (text, options) => agentBody(text, { ...options, protocol: "chat" }, 745),
  load: { kind: "steadily", rate: 100, length_s: 2 },
  targets: both,
  probe: "/livez",
  isQuick: false,
  rows: [
    cpuRow("large", "CPU a 1 MiB body", perRequest, null),
    {
      ...{ id: "large-p99", name: "1 MiB bodies, 100 a second: p99", unit: "ms", budget: 10 },
      ...{ of: (slice) => percentile(slice.latencies_ms, 0.99), compared: passed("added") },
    },
    {
      ...{ id: "large-livez", name: "meanwhile /livez: p99", unit: "ms", budget: 100, compared: null },
      of: (slice) => percentile(slice.probes_ms, 0.99),
    },
  ],
};

export const scenarios: readonly Scenario[] = [
  ...protocols.map(small),
  smallEmbedding,
  alone,
  sparseClosely,
  sparseSteadily,
  ...protocols.map(agentWhole),
  agentCapped,
  ...protocols.map(agentSent),
  agentAsStreamed,
  ...protocols.map((protocol) => events(protocol, protocol)),
  events("messages", "chat"),
  events("responses", "chat"),
  together,
  steady(1000, names.postgres, { p50: 0.6, p99: 3 }),
  steady(500, names.embedded, { p50: 5, p99: null }),
  streams(1000, thousand, 2, 200),
  streams(5000, fiveThousand, 4, 600),
  largeBodies,
  workers,
];

/** The scenario with `--quick`: fewer and shorter rounds, and without the embedded node if a round takes seconds. */
export function shortened(scenario: Scenario): Scenario {
  const { load, targets } = scenario;
  const rounds = Math.min(scenario.rounds, few_rounds);
  if (load.kind === "closely") return { ...scenario, rounds, load: { ...load, length_s: 0.7 } };
  return load.kind === "spread"
    ? { ...scenario, rounds, targets: targets.filter((name) => name !== names.embedded) }
    : { ...scenario, rounds };
}
