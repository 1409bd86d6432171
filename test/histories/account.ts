// All that the judge knows of one request: what its node asked the store and was answered, what was forwarded, what the
// store carried out.

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

/** The totals of one window, as the judge adds them up. */
export interface Cell {
  kind: WindowKind | "extra";
  startsAt_ms: number;
  used: number;
  held: number;
  /** The sum of used and held, and used alone, when the judge last looked. */
  seen: number;
  seenUsed: number;
  /** Every interval that this window has had. */
  spans: Interval[];
}

export interface Account {
  readonly plan: RequestPlan;
  readonly node: Node;
  readonly organization: OrganizationPlan;
  readonly askedAt_ms: number;
  /** The most nanos that the request ever asked to hold. */
  askedNanos: number;
  /** Commands that the request's node has sent, each once, though some were sent again. */
  readonly sent: Set<string>;
  /** The nanos that the request's hold last had. */
  heldNanos: number;
  /** Answers of the store that refused the request. */
  readonly refusals: Set<LedgerAnswer["answer"]>;
  /**
   * The grant of a hold; null if there is none. A grant on extra usage is billed to no session window, but opens one.
   */
  grant: Grant | null;
  /** When the request's node, with its grant, went on with the request; null before that. */
  admittedAt_ms: number | null;
  /**
   * What the node certainly knows from answers: that there is a grant, that the request is settled, and the output
   * tokens of its last checkpoint.
   */
  grantKnown: boolean;
  settlementKnown: boolean;
  checkpointKnown: number;
  /** The checkpoints that the store carried out: their tokens, and when they were sent. */
  checkpoints: { tokens: number; sentAt_ms: number; entry: Entry }[];
  ratesTakenAt_ms: number | null;
  /**
   * Among how many processes the node divided the rate limits when it took the request's rates from its own share; null
   * if they were taken in the store that the processes share.
   */
  ratesSharedAmong: number | null;
  /**
   * When the store of the sliding rates last answered about the request, whatever the answer was. The node may read the
   * answer much later.
   */
  ratesAskedAt_ms: number | null;
  refused: FaultCode | null;
  refusedAt_ms: number;
  /** Whether an engine was asked, and has not failed of itself since. */
  engineAsked: boolean;
  /** When the request's client left. */
  leftAt_ms: number | null;
  /** Whether the request's node has given up the hold as lost. */
  isLost: boolean;
  /**
   * The key is a delta; the value is the number of output tokens that the engine had produced with it, those before it
   * included.
   */
  readonly tokensOf: Map<InferenceEvent, number>;
  /**
   * The events that carry the engine's report on its usage, and whether any of them has passed the meter, which counts
   * the usage.
   */
  readonly reports: Set<InferenceEvent>;
  reported: boolean;
  /** Output tokens of this attempt that have passed the meter. */
  passed: number;
  /**
   * Output tokens that may reach the client, and since when. For a stream: those that have passed the meter. For
   * another answer: those with which it came to its end.
   */
  delivered: number;
  deliveredAt_ms: number;
  /** The prompt's cost as the request's node knows it. */
  promptNanos: number;
  ending: Ending | null;
  endedAt_ms: number;
  /**
   * Whether the answer was to be kept in a log, but there was no log for it, so that it ends before any of it is read.
   */
  hasNoLog: boolean;
  /** What was written to the log of an answer that is kept. */
  text: string;
  /**
   * When the store was set back to a past that lacks something that it had answered about this request; null if it was
   * not.
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
  /**
   * The ids of the subjects that were limited at the grant, such as the key and its team, whatever the key's team is
   * later.
   */
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
