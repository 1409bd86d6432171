// The account of one request: all that the judge (judge.ts, which checks the rules) knows about it. That is, the
// commands of its node and the store's answers, the tokens that were forwarded, and the commands that the store carried
// out.

import type { InferenceEvent } from "../../src/core/inference/event.ts";
import type { FaultCode } from "../../src/core/inference/fault.ts";
import type { LedgerAnswer, WindowKind } from "../../src/core/store/ledger.ts";
import type { Ending } from "../../src/core/usage/record.ts";
import type { Interval } from "../core/store/windows-model.ts";
import type { Node } from "./node.ts";
import { searchNanosOf } from "./passed.ts";
import { costOf, heldInputPrice } from "./prices.ts";
import type { OrganizationPlan, RequestPlan } from "./scenario.ts";
import type { Entry } from "./store.ts";

/** The totals of one window, as the judge adds them up from records and holds. */
export interface Cell {
  kind: WindowKind | "extra";
  startsAt_ms: number;
  used: number;
  held: number;
  /** The window's used and held nanos together (`seen`), and the used ones alone, at the judge's previous check. */
  seen: number;
  seenUsed: number;
  /** Every interval that this window has had, since a change of clock or calendar may give it another. */
  spans: Interval[];
}

export interface Account {
  readonly plan: RequestPlan;
  readonly node: Node;
  readonly organization: OrganizationPlan;
  readonly askedAt_ms: number;
  /** The most nanos that the request ever asked to hold. */
  askedNanos: number;
  /** The commands that the request's node has sent, each listed once, though some were sent more than once. */
  readonly sent: Set<string>;
  /** The nanos that the request's hold had at the judge's last check. */
  heldNanos: number;
  /** The store's answers that refused the request. */
  readonly refusals: Set<LedgerAnswer["answer"]>;
  /**
   * The grant of a hold; null if there is none. A grant on extra usage is billed to no session window, but opens one.
   */
  grant: Grant | null;
  /** The time at which the request's node, with its grant, went on with the request; null before that. */
  admittedAt_ms: number | null;
  /**
   * The facts that the node certainly knows from the store's answers: that there is a grant, that the request is
   * settled, and the output tokens of its last checkpoint.
   */
  grantKnown: boolean;
  settlementKnown: boolean;
  checkpointKnown: number;
  /** The checkpoints that the store carried out: their output tokens, and the times at which the node sent them. */
  checkpoints: { tokens: number; sentAt_ms: number; entry: Entry }[];
  ratesTakenAt_ms: number | null;
  /**
   * The number of processes among which the node divided the rate limits when it took the request's rates from its own
   * share; null if they were taken in the store that the processes share.
   */
  ratesSharedAmong: number | null;
  /**
   * The time at which the store of the sliding rates last answered about the request, whatever the answer was. The node
   * may read the answer much later.
   */
  ratesAskedAt_ms: number | null;
  refused: FaultCode | null;
  refusedAt_ms: number;
  /** Whether an engine was asked for the answer and has not broken off by itself since. */
  engineAsked: boolean;
  /** The time at which the request's client disconnected. */
  leftAt_ms: number | null;
  /** Whether the request's node has given up the hold, which it believes to be lost. */
  isLost: boolean;
  /**
   * The key is a delta; the value is the number of output tokens that the engine had produced up to and including this
   * delta.
   */
  readonly tokensOf: Map<InferenceEvent, number>;
  /**
   * The events that carry the engine's usage report, and whether any of them has passed the meter, which counts the
   * usage.
   */
  readonly reports: Set<InferenceEvent>;
  reported: boolean;
  /** The output tokens of the current attempt that have passed the meter. */
  passed: number;
  /**
   * The output tokens that may reach the client, and the time from which they may. For a stream: those that have passed
   * the meter. For an unstreamed answer: those of the finished answer.
   */
  delivered: number;
  deliveredAt_ms: number;
  /** The prompt's cost as the request's node knows it. */
  promptNanos: number;
  ending: Ending | null;
  endedAt_ms: number;
  /**
   * Whether the answer was to be stored in a log, but no log could be opened for it, so that it ends before any of it
   * is read.
   */
  hasNoLog: boolean;
  /** The text that was written to the log of an answer that is kept. */
  text: string;
  /**
   * The time at which a failover set the store back to a past that lacks an answer that it had given about this
   * request; null if that did not happen.
   */
  setBackAt_ms: number | null;
  /** Whether the request was refused, or its settlement is confirmed. */
  over: boolean;
}

export interface Grant {
  at_ms: number;
  entry: Entry;
  cells: Cell[];
  sessionStartsAt_ms: number;
  /** The ids of the subjects that were limited at the grant, such as the key and the team that the key was in then. */
  subjects: readonly string[];
}

/** The prompt's cost before an engine has reported how long the prompt is. */
export function promptNanosOf(plan: RequestPlan): number {
  return costOf(plan.inputTokensEstimate, heldInputPrice) + searchNanosOf(plan);
}

export function accountOf(plan: RequestPlan, node: Node, organization: OrganizationPlan, now_ms: number): Account {
  return {
    plan,
    node,
    organization,
    askedAt_ms: now_ms,
    askedNanos: 0,
    sent: new Set(),
    heldNanos: 0,
    refusals: new Set(),
    grant: null,
    admittedAt_ms: null,
    grantKnown: false,
    settlementKnown: false,
    checkpointKnown: 0,
    checkpoints: [],
    ratesTakenAt_ms: null,
    ratesSharedAmong: null,
    ratesAskedAt_ms: null,
    refused: null,
    refusedAt_ms: 0,
    engineAsked: false,
    leftAt_ms: null,
    isLost: false,
    tokensOf: new Map(),
    reports: new Set(),
    reported: false,
    passed: 0,
    delivered: 0,
    deliveredAt_ms: 0,
    promptNanos: promptNanosOf(plan),
    ending: null,
    endedAt_ms: Number.POSITIVE_INFINITY,
    hasNoLog: false,
    text: "",
    setBackAt_ms: null,
    over: false,
  };
}
