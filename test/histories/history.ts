// A history is a simulated run that a seed generates and replays exactly: several nodes over one store, clients that
// come and leave, wires that lose, double and delay messages, nodes that crash and freeze, a store that goes away.

import { noUsage } from "../../src/core/inference/usage.ts";
import type { Command, RequestFacts } from "../../src/core/store/ledger.ts";
import { request } from "./client.ts";
import type { Counts } from "./counts.ts";
import { calm, harm } from "./harm.ts";
import { Judge } from "./judge.ts";
import { keyedRequest } from "./kept-client.ts";
import type { Defects } from "./mutations.ts";
import { Node } from "./node.ts";
import { prices } from "./prices.ts";
import type { Violation } from "./rules.ts";
import { type FaultPlan, type RequestPlan, type Scenario, scenarioOf } from "./scenario.ts";
import { type Keep, noWeather, World } from "./world.ts";

export interface HistoryOptions {
  /** The parts of the history that a replay keeps; the rest is left out. */
  keep?: Keep;
  /** The only kinds of faults that may happen. With this option every message passes quickly, and once. */
  only?: readonly FaultPlan["kind"][] | undefined;
  /** The defects to simulate, each of which removes a rule of the protocol. */
  defects?: Defects;
  /** Whether to record a trace of the events. */
  traced?: boolean;
}

export interface History {
  seed: number;
  steps: number;
  violation: (Violation & { trace: string[] }) | null;
  counts: Counts;
  /** All parts of the history, so that a replay can keep fewer of them. */
  kept: Required<Keep>;
}

/**
 * How long a history may go on after the last fault, in milliseconds: a history that has not ended by then never will.
 * The request of a key and each of its repeats may run for half a minute, one after the other, if one engine after
 * another breaks off.
 */
const patience_ms = 250_000;

export function runHistory(seed: number, options: HistoryOptions = {}): History {
  const { keep = {}, defects = {}, traced = false, only } = options;
  const scenario = less(only ? restricted(scenarioOf(seed), only) : scenarioOf(seed), keep);
  const world = new World(seed, scenario, defects, keep, traced);
  const judge = new Judge(world);
  prime(world);
  const lives = new Map<number, number>();
  const start = (index: number) => {
    world.tell(() => `node ${index} begins`);
    const life = lives.get(index) ?? 0;
    lives.set(index, life + 1);
    world.nodes[index] = new Node(world, judge, index, life, scenario.nodes[index]!);
  };
  for (const index of scenario.nodes.keys()) if (!keep.nodes || keep.nodes.includes(index)) start(index);
  for (const plan of scenario.requests) {
    world.in(plan.at_ms, () => {
      const node = world.nodes[plan.node];
      if (!isServing(node)) return;
      void (plan.repeats ? keyedRequest : request)(world, judge, node, plan);
    });
    for (const [time, repeat] of (plan.repeats ?? []).entries())
      world.in(plan.at_ms + repeat.after_ms, () => {
        const node = [world.nodes[repeat.node], ...world.nodes].find(isServing);
        if (node) void keyedRequest(world, judge, node, repeatOf(plan, time + 1, node.index));
      });
  }
  for (const fault of scenario.faults) world.in(fault.at_ms, () => harm(world, judge, fault, start));
  world.time.in(scenario.quiet_ms, () => calm(world, start));

  const end_ms = scenario.began_ms + scenario.quiet_ms + patience_ms;
  const goesOn = () => !judge.violation && !world.time.isStuck && !world.isOver && world.time.now_ms < end_ms;
  while (goesOn()) if (!world.time.step()) break;
  if (world.time.isStuck)
    judge.violation = { rule: "available", sentence: "a turn of a node's event loop does not end" };
  judge.finish();
  const { violation, counts } = judge;
  return {
    seed,
    steps: world.time.steps,
    violation: violation && { ...violation, trace: world.trace },
    counts,
    kept: {
      nodes: world.nodes.filter((node) => node !== undefined).map(({ index }) => index),
      requests: scenario.requests.map(({ index }) => index),
      parts: Math.max(0, ...scenario.requests.map(({ parts }) => parts.length)),
      faults: scenario.faults.map(({ index }) => index),
      messages: world.harmed,
    },
  };
}

const isServing = (node: Node | undefined): node is Node => node?.runs === true && !node.drains;

/** A repeat of the same request, by a client that does not disconnect. */
const repeatOf = (plan: RequestPlan, time: number, node: number): RequestPlan => ({
  ...plan,
  id: `req_${plan.index + 1 + 1_000 * time}`,
  node,
  leaves_ms: null,
});

function less(scenario: Scenario, { requests, parts, faults }: Keep): Scenario {
  const among = (kept: readonly number[] | undefined) => (one: { index: number }) => !kept || kept.includes(one.index);
  return {
    ...scenario,
    requests: scenario.requests
      .filter(among(requests))
      .map((request) => ({ ...request, parts: request.parts.slice(0, parts) })),
    faults: scenario.faults.filter(among(faults)),
  };
}

function restricted(scenario: Scenario, only: readonly FaultPlan["kind"][]): Scenario {
  const faults = scenario.faults.filter(({ kind }) => only.includes(kind));
  return { ...scenario, faults, weather: noWeather, ratesMayFail: false };
}

/** Opens the session windows that were open before the history. */
function prime({ scenario, store }: World): void {
  for (const [index, { id, sessionOpenedAt_ms }] of scenario.organizations.entries()) {
    if (sessionOpenedAt_ms === null) continue;
    const facts: RequestFacts = {
      requestId: `req_before_${index}`,
      organizationId: id,
      keyId: "key_1",
      operation: "chat.completions",
      model: "acme/writer-1",
      stream: false,
      prices,
    };
    const limits = { session: null, week: null, month: null, concurrentRequests: null };
    const least = { inputNanos: 0, outputTokens: 0, outputTokens_min: 0, lease_ms: 1_000 };
    const end = {
      usage: noUsage,
      nanos: 0,
      outcome: "completed",
      stoppedBy: null,
      errorCode: null,
      route: null,
      reportRejected: null,
    } as const;
    const commands: Command[] = [
      { verb: "admit", ...facts, limits, ...least },
      { verb: "settle", ...facts, limits, ...end },
    ];
    for (const command of commands) store.prime(sessionOpenedAt_ms, [command]);
  }
}
