// All that the judge knows of one request: what its node asked and heard, what was forwarded, what the store carried out.

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

/** One window's totals, as the judge adds them up. */
export interface Cell {
  kind: WindowKind | "extra";
  startsAt_ms: number;
  used: number;
  held: number;
  /** Used and held, and used, when the judge last looked. */
  seen: number;
  seenUsed: number;
  /** The windows that it has been. */
  spans: Interval[];
}

export interface Account {
  readonly plan: RequestPlan;
  readonly node: Node;
  readonly organization: OrganizationPlan;
  readonly askedAt_ms: number;
  /** The most nanos that it ever asked to hold. */
  askedNanos: number;
  /** Commands that its node has sent, some of them again. */
  readonly sent: Set<string>;
  /** What it held last. */
  heldNanos: number;
  /** Answers of the store that refused it. */
  readonly refusals: Set<LedgerAnswer["answer"]>;
  /** A grant on extra usage is billed to no session, but opens one. */
  grant: Grant | null;
  /** When its node went on with it. */
  admittedAt_ms: number | null;
  /** What its node was told for sure. */
  grantKnown: boolean;
  settlementKnown: boolean;
  checkpointKnown: number;
  /** Checkpoints that were carried out: what they said, and when they were sent. */
  checkpoints: { tokens: number; sentAt_ms: number; entry: Entry }[];
  ratesTakenAt_ms: number | null;
  /** Among how many processes its node divided the limits when it took; null: the store that they share took it. */
  ratesSharedAmong: number | null;
  /** When the sliding rates answered last, whatever they answered. Its node may read that much later. */
  ratesAskedAt_ms: number | null;
  refused: FaultCode | null;
  refusedAt_ms: number;
  /** Whether an engine was asked, and has not failed of itself since. */
  engineAsked: boolean;
  /** When its client left. */
  leftAt_ms: number | null;
  /** Its node has given the hold up for lost. */
  isLost: boolean;
  /** Output tokens that its engine had produced with a delta, those before it included. */
  readonly tokensOf: Map<InferenceEvent, number>;
  /** What its engine said of the whole, and whether any of it has passed. */
  readonly reports: Set<InferenceEvent>;
  reported: boolean;
  /** Output tokens of this attempt that have passed the meter. */
  passed: number;
  /** Output tokens that may reach the client, and since when: of a stream what has passed, else what came to its end. */
  delivered: number;
  deliveredAt_ms: number;
  /** The prompt's cost as its node knows it. */
  promptNanos: number;
  ending: Ending | null;
  endedAt_ms: number;
  /** There was no log for an answer that was to be kept: it ends before it is read. */
  hasNoLog: boolean;
  /** What was written of an answer that is kept. */
  text: string;
  /** When the store woke up in a past that lacks something that it had said of this request. */
  setBackAt_ms: number | null;
  /** Refused, or its settlement is confirmed. */
  over: boolean;
}

export interface Grant {
  at_ms: number;
  entry: Entry;
  cells: Cell[];
  sessionStartsAt_ms: number;
  /** The key and the team that were limited then, by their ids; whatever the key's team is later. */
  subjects: readonly string[];
}

/** Before an engine has said how long it is. */
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
