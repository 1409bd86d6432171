// A history: several nodes over one store, clients that come and leave, wires that lose, double and delay, nodes that
// crash and freeze, a store that goes away. A seed makes all of it, and replays it exactly.

import { noUsage } from "../../src/inference/usage.ts";
import type { Command, RequestFacts } from "../../src/store/ledger.ts";
import { request } from "./client.ts";
import { type Counts, Judge } from "./judge.ts";
import type { Defects } from "./mutations.ts";
import { Node } from "./node.ts";
import { prices } from "./prices.ts";
import type { Violation } from "./rules.ts";
import { type FaultPlan, type Scenario, scenarioOf } from "./scenario.ts";
import { type Keep, World } from "./world.ts";

export interface HistoryOptions {
  /** What is left out of a replay. */
  keep?: Keep;
  /** A rule taken out. */
  defects?: Defects;
  /** Tell what happened. */
  traced?: boolean;
}

export interface History {
  seed: number;
  steps: number;
  violation: (Violation & { trace: string[] }) | null;
  counts: Counts;
  /** What there was, for a replay to keep less of. */
  kept: Required<Keep>;
}

/** A history that is not over so long after the last harm never will be. */
const patience_ms = 60_000;

export function runHistory(seed: number, options: HistoryOptions = {}): History {
  const { keep = {}, defects = {}, traced = false } = options;
  const scenario = less(scenarioOf(seed), keep);
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
      if (node?.runs && !node.drains) void request(world, judge, node, plan);
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

/** Sessions that were open before. */
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
    const least = { inputUnits: 0, outputTokens: 0, outputTokens_min: 0, lease_ms: 1_000 };
    const end = {
      usage: noUsage,
      units: 0,
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

function harm(world: World, judge: Judge, fault: FaultPlan, start: (index: number) => void): void {
  if (world.quiet) return;
  const { time, store } = world;
  const quietIn_ms = time.began_ms + world.scenario.quiet_ms - time.now_ms;
  const node = "node" in fault ? world.nodes[fault.node] : undefined;
  if ("node" in fault && !node?.runs) return;
  const for_ms = "for_ms" in fault ? Math.min(fault.for_ms, quietIn_ms) : 0;
  const trouble = { from_ms: time.now_ms, to_ms: time.now_ms + for_ms };
  const name = node?.name;
  switch (fault.kind) {
    case "crash":
      world.tell(() => `node ${name} crashes`);
      gone(fault.restart_ms);
      return;
    case "drain": {
      if (node!.drains) return;
      node!.drains = true;
      world.tell(() => `node ${name} drains, within ${fault.within_ms} ms`);
      void node!.admission.stop(fault.within_ms).then(() => gone(fault.restart_ms));
      return;
    }
    case "freeze":
      world.tell(() => `node ${name} freezes for ${for_ms} ms`);
      node!.troubles.push(trouble);
      node!.clock.freeze(for_ms);
      return;
    case "cut": {
      world.tell(() => `node ${name} is cut off for ${for_ms} ms${fault.silent ? ", in silence" : ""}`);
      const cut = { silent: fault.silent };
      node!.troubles.push(trouble);
      node!.cut = cut;
      world.in(for_ms, () => {
        if (node!.cut === cut) node!.cut = null;
      });
      return;
    }
    case "away":
    case "store-crash":
      world.tell(() =>
        fault.kind === "away" ? `the store is away for ${for_ms} ms` : `the store crashes, for ${for_ms} ms`,
      );
      world.storeTroubles.push(trouble);
      store.downUntil_ms = Math.max(store.downUntil_ms, trouble.to_ms);
      if (fault.kind === "store-crash") {
        judge.crashed(store.crash());
      }
      return;
    case "rates-away":
      world.tell(() => `the store of the rates is away for ${for_ms} ms`);
      world.rateTroubles.push(trouble);
      world.ratesAwayUntil_ms = Math.max(world.ratesAwayUntil_ms, trouble.to_ms);
      return;
    case "rates-flush":
      world.tell(() => "the store of the rates is flushed");
      world.rates = world.freshRates();
      judge.ratesFlushed();
  }

  function gone(restart_ms: number | null): void {
    if (node!.clock.crashed) return;
    world.tell(() => `node ${name} is gone`);
    node!.clock.crashed = true;
    if (restart_ms !== null) world.in(restart_ms, () => start(node!.index));
    else if (world.quiet) oneAtLeast(world, start);
  }
}

/** The quiet at the end. */
function calm(world: World, start: (index: number) => void): void {
  world.tell(() => "from here on all goes well");
  world.quiet = true;
  oneAtLeast(world, start);
}

/** Somebody must be there to recover what is left. */
function oneAtLeast({ nodes }: World, start: (index: number) => void): void {
  if (nodes.every((node) => !node || node.clock.crashed)) start(nodes.findIndex((node) => node));
}
