// Requests of a history (a simulated run) whose answers are passed on in their engine's format: their operations, their
// holds before anything is sent, and their costs.

import type { Passed } from "../../src/core/inference/request.ts";
import type { Command, Operation } from "../../src/core/store/ledger.ts";
import type { Chance } from "../faults/chance.ts";
import { betweenOf, spread } from "./chances.ts";
import type { Counts } from "./counts.ts";
import { costOf, heldInputPrice, prices } from "./prices.ts";
import type { Say } from "./rules.ts";
import type { RequestPlan } from "./scenario.ts";

export interface PassedPlan {
  operation: Exclude<Operation, "adjustment">;
  inputs: number;
  /** The number of searches, which have a separate price. */
  searches: number;
}

const inputs_max = 2048;
const documents_per_search = 100;
/**
 * The most tokens of an answer that the engine sends in one piece. That is more than several growth steps, so such an
 * answer holds more at first than one whose hold grows.
 */
export const wholeTokens_max = 12_000;

/**
 * Turns one request in four into an operation whose answer is passed on. Requests with repeats are left out, because no
 * such answer is stored for a repeat.
 */
export function passedOf(chance: Chance, plan: RequestPlan): RequestPlan {
  if (plan.repeats || chance.next() >= 0.25) return plan;
  const operation = chance.pick(["embeddings", "rerank", "completions", "completions"] as const);
  if (operation === "completions") return completionOf(chance, plan);
  const inputs = betweenOf(chance)(1, inputs_max);
  const searches = operation === "rerank" ? Math.ceil(inputs / documents_per_search) : 0;
  // A large answer goes to the client in pieces, after which no other engine is asked.
  const isLarge = chance.next() < 0.4;
  const pieces = isLarge ? plan.parts : plan.parts.slice(0, 1);
  return {
    ...plan,
    passed: { operation, inputs, searches },
    stream: false,
    engine: isLarge && plan.engine === "whole" ? "reports" : isLarge ? plan.engine : chance.pick(["whole", "silent"]),
    outputTokens_max: 1,
    // A report of zero tokens counts as no report (src/features/operations/usage.ts).
    inputTokens: Math.max(1, plan.inputTokens),
    parts: (pieces.length > 0 ? pieces : [{ wait_ms: 100 }]).map(({ wait_ms }) => ({ wait_ms, tokens: 0 })),
    again: isLarge ? null : (plan.again?.slice(0, 1).map(({ wait_ms }) => ({ wait_ms, tokens: 0 })) ?? null),
    lie: plan.lie === "input" ? plan.lie : null,
  };
}

function completionOf(chance: Chance, plan: RequestPlan): RequestPlan {
  const passed = { operation: "completions", inputs: 1, searches: 0 } as const;
  if (plan.stream) return { ...plan, passed };
  const outputTokens_max = spread(chance, 1, wholeTokens_max);
  const tokens = 1 + chance.below(outputTokens_max);
  const parts = [{ wait_ms: spread(chance, 20, 9_000), tokens }];
  return { ...plan, passed, engine: "whole", outputTokens_max, parts, again: plan.again?.slice(0, 1) ?? null };
}

/** Whether the answer consists of numbers without text, so that its usage report comes only at its end. */
export function isWithoutOutput({ passed }: RequestPlan): boolean {
  return passed !== null && passed.operation !== "completions";
}

export function passedRequestOf({ passed, inputTokensEstimate: largestTokens }: RequestPlan): { passed?: Passed } {
  if (!passed) return {};
  const { inputs, searches, operation } = passed;
  const makesText = operation === "completions";
  return { passed: { inputs, makesText, largestTokens, searches, texts: () => [], release() {} } };
}

/**
 * The plan with at most as many tokens as the engine is asked for, because an engine that answers in one piece writes
 * no more than that.
 */
export function within(plan: RequestPlan, tokens_max: number): RequestPlan {
  if (!plan.passed || tokens_max === 0) return plan;
  const cut = (parts: RequestPlan["parts"]) =>
    parts.map((part) => ({ ...part, tokens: Math.min(part.tokens, tokens_max) }));
  return { ...plan, parts: cut(plan.parts), again: plan.again && cut(plan.again) };
}

/** The cost of a request's searches, if the request is charged at all. */
export function searchNanosOf({ passed }: RequestPlan): number {
  return costOf(passed?.searches ?? 0, prices.search);
}

/**
 * Checks that the admission already holds everything that cannot be held later: searches, and the output of an answer
 * that comes in one piece.
 */
export function judgePassedHold(plan: RequestPlan, command: Command, say: Say): void {
  if (!plan.passed || command.verb !== "admit") return;
  const input = costOf(plan.inputTokensEstimate, heldInputPrice) + searchNanosOf(plan);
  if (command.inputNanos !== input)
    say("passed", `${plan.id} asks to hold ${command.inputNanos} nanos for its input, which may cost ${input}`);
  if (!plan.stream && command.outputTokens !== plan.outputTokens_max)
    say("passed", `${plan.id} comes whole with ${plan.outputTokens_max} tokens, and holds ${command.outputTokens}`);
}

export function countPassed(plan: RequestPlan, charged: number, counts: Counts): void {
  if (!plan.passed) return;
  if (isWithoutOutput(plan)) counts["passed on without output"] += 1;
  else if (plan.stream) counts["completions that were streamed"] += 1;
  else counts["completions that came whole"] += 1;
  if (charged > 0) counts["searches charged"] += plan.passed.searches;
}
