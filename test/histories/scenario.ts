// The scenario of a history (a simulated run), as plain data from a seed: the organizations and their limits, the
// requests and their times, the faults of nodes and stores, and the faults of the wires.

import { noLimits, type Plan } from "../../src/core/store/plan.ts";
import { type Anchor, session_ms, withCalendar } from "../core/store/windows-model.ts";
import type { Chance } from "../faults/chance.ts";
import { betweenOf, chanceFor, kindOf, spread } from "./chances.ts";
import { type ChangePlan, calendarOf, changeOf } from "./changes.ts";
import { type PassedPlan, passedOf } from "./passed.ts";
import type { NodeClockOptions } from "./time.ts";

export interface OrganizationPlan {
  id: string;
  plan: Plan;
  extra: { enabled: boolean; capNanos: number | null };
  anchors: Anchor[];
  /**
   * The time at which the organization's session was opened, before the history began, so that it ends during the
   * history; null if no session was open.
   */
  sessionOpenedAt_ms: number | null;
}

export interface NodePlan extends NodeClockOptions {
  /** The error of the node's wall clock, on which nothing may depend. */
  wall_ms: number;
  batch_commands_max: number;
}

export interface RequestPlan {
  index: number;
  id: string;
  at_ms: number;
  node: number;
  organization: number;
  /**
   * The way in which the engine answers. `reports`: it reports its usage with each part; `silent`: it never reports;
   * `whole`: it sends its answer in one piece.
   */
  engine: "reports" | "silent" | "whole";
  /** The mistake in each of the engine's reports; null if they are right. */
  lie: Lie | null;
  inputTokensEstimate: number;
  inputTokens: number;
  outputTokens_max: number | undefined;
  parts: { wait_ms: number; tokens: number }[];
  /** Whether the client reads the answer as it comes; from a `whole` engine it never does. */
  stream: boolean;
  /** Whether the engine breaks the answer off instead of ending it. */
  breaksOff: boolean;
  /**
   * The parts that another engine sends after the first has broken off, for a request without streaming; null if no
   * other engine is asked.
   */
  again: RequestPlan["parts"] | null;
  /** The wait from the last part to the end of the answer. */
  ends_ms: number;
  /** The time after which the client disconnects, from its request on; null if it does not. */
  leaves_ms: number | null;
  /** The time from the permission to forward a part until its bytes are written. */
  write_ms: number;
  /**
   * The repeats of a request with an idempotency key: each has the time after the first request and the node that it
   * asks. Null if the request has no key.
   */
  repeats: readonly { after_ms: number; node: number }[] | null;
  /** The id of the first request with the same key, which may be this request. */
  first: string;
  /** Whether the request is for a background response. */
  isBackground: boolean;
  /** The plan of an answer that is passed on as its engine wrote it; null if the request is a chat completion. */
  passed: PassedPlan | null;
}

/**
 * The mistakes in a report:
 * - `more`: more output than the model can write
 * - `none`: an output of zero, whatever was written
 * - `less`: less output each time
 * - `half`: no output at all
 * - `input`: an input that cannot be
 */
export type Lie = "more" | "none" | "less" | "half" | "input";
const lies: readonly Lie[] = ["more", "none", "less", "half", "input"];

export type FaultPlan = { index: number; at_ms: number } & (
  | { kind: "crash"; node: number; restart_ms: number | null }
  | { kind: "drain"; node: number; within_ms: number; restart_ms: number | null }
  | { kind: "freeze"; node: number; for_ms: number }
  /** No message passes between this node and the store. */
  | { kind: "cut"; node: number; for_ms: number; silent: boolean }
  /** The store stops answering, or crashes and loses the transactions that it had not written to its disk. */
  | { kind: "away" | "store-crash"; for_ms: number }
  /** The store of the sliding rates stops answering, or forgets all counts. */
  | { kind: "rates-away"; for_ms: number }
  | { kind: "rates-flush" }
  | ChangePlan
);

/** The probabilities that a message is lost, left unanswered, slow or doubled. */
export interface Weather {
  lost: number;
  unanswered: number;
  slow: number;
  doubled: number;
}

export interface Scenario {
  began_ms: number;
  organizations: OrganizationPlan[];
  nodes: NodePlan[];
  requests: RequestPlan[];
  faults: FaultPlan[];
  weather: Weather;
  /** The charge for a hold whose lease has lapsed: by its last checkpoint, or all of the hold. */
  recovery: "checkpoint" | "hold";
  /** The longest time that the store's disk takes to flush. */
  flush_ms_max: number;
  /**
   * Whether the weather (the probabilities that messages are lost, unanswered, slow or doubled) and faults reach the
   * store of the sliding rates, too.
   */
  ratesMayFail: boolean;
  /** The time after which no more faults happen, from the beginning of the history. */
  quiet_ms: number;
}

export const lease_ms = 10_000;
export const checkpoint_ms = 1_000;
export const sweep_ms = 1_500;

const comes_ms_max = 15_000;
const harm_ms_max = 22_000;
/** The time of a client's last repeat, later than all faults. */
const repeat_last_ms = 34_000;
/** The index of the fault that cuts one node off (`cutAlone`); random faults have lower indices. */
const cut_alone = 50;
const frozen_with_claim = 60;
/** The index of the first change, higher than that of any fault. */
const first_change = 100;
const anchor_ms = Date.UTC(2026, 0, 31, 10);

export function scenarioOf(seed: number): Scenario {
  const chance = chanceFor(seed, kindOf.world, 0);
  const between = betweenOf(chance);
  // A week or a month may end in the middle of the history, and so may a session.
  const boundary_ms = chance.next() < 0.3 ? between(2_000, 20_000) : null;
  const monthEnds = chance.next() < 0.5;
  const boundaryAt_ms = monthEnds ? Date.UTC(2026, 10, 30, 10) : anchor_ms + 42 * 7 * 86_400_000;
  const began_ms = boundaryAt_ms - (boundary_ms ?? 86_400_000 + 12_345);
  const sessionOpenedAt_ms =
    chance.next() < 0.3
      ? began_ms + between(2_000, 20_000) - session_ms
      : chance.next() < 0.5
        ? null
        : began_ms - 1_000;
  const organizations = Array.from({ length: chance.pick([1, 1, 1, 1, 2, 2, 3, 4]) }, (_, index) =>
    organizationOf(chanceFor(seed, kindOf.world, 1, index), index, { began_ms, sessionOpenedAt_ms }),
  );
  const nodes = Array.from({ length: between(2, 3) }, (_, index) => nodeOf(chanceFor(seed, kindOf.node, index)));
  const requests = Array.from({ length: spread(chance, 3, 16) }, (_, index) =>
    passedOf(
      chanceFor(seed, kindOf.passed, index),
      keptOf(
        chanceFor(seed, kindOf.kept, index),
        requestOf(chanceFor(seed, kindOf.request, index), index, nodes.length, organizations.length),
        nodes.length,
      ),
    ),
  );
  const ratesMayFail = chance.next() < 0.3;
  const faults = Array.from({ length: chance.next() < 0.15 ? 0 : between(1, 5) }, (_, index) =>
    faultOf(chanceFor(seed, kindOf.fault, index), index, nodes.length, ratesMayFail),
  );
  const changes = Array.from({ length: chanceFor(seed, kindOf.change, 0).pick([0, 0, 1, 1, 2, 3]) }, (_, index) => ({
    index: first_change + index,
    ...changeOf(chanceFor(seed, kindOf.change, index + 1), organizations),
  }));
  const storm = [0, 0.3, 1, 1][chance.below(4)]!;
  const fate = (most: number) => (chance.next() < 0.6 ? storm * most * chance.next() : 0);
  const weather = { lost: fate(0.3), unanswered: fate(0.3), slow: fate(0.25), doubled: fate(0.3) };
  const recovery = chance.next() < 0.1 ? "hold" : "checkpoint";
  const flush_ms_max = chance.pick([4, 8, 50, 400]);
  return {
    began_ms,
    organizations,
    nodes,
    requests,
    faults: [
      ...faults,
      ...cutAlone(chanceFor(seed, kindOf.fault, cut_alone), nodes.length),
      ...frozenWithClaim(chanceFor(seed, kindOf.kept, frozen_with_claim), requests),
      ...changes,
    ],
    weather,
    recovery,
    flush_ms_max,
    ratesMayFail,
    quiet_ms: harm_ms_max + 8_000,
  };
}

function organizationOf(
  chance: Chance,
  index: number,
  { began_ms, sessionOpenedAt_ms }: Pick<Scenario, "began_ms"> & Pick<OrganizationPlan, "sessionOpenedAt_ms">,
): OrganizationPlan {
  const id = `org_${index + 1}`;
  const limit = (probability: number) => (chance.next() < probability ? spread(chance, 4_000, 1_500_000) : null);
  const plan: Plan = {
    ...noLimits,
    name: `plan of ${id}`,
    session: limit(0.7),
    week: limit(0.3),
    month: limit(0.3),
    concurrentRequests: chance.next() < 0.4 ? 1 + chance.below(8) : null,
    requestsPerMinute: chance.next() < 0.25 ? 2 + chance.below(8) : null,
    tokensPerMinute: chance.next() < 0.1 ? spread(chance, 2_000, 60_000) : null,
  };
  const enabled = chance.next() < 0.25;
  const extra = { enabled, capNanos: enabled ? limit(0.9) : null };
  return { id, plan, extra, anchors: anchorsOf(chance, began_ms), sessionOpenedAt_ms };
}

/**
 * The anchors of an organization (the instants from which its weeks and months are counted). One organization in three
 * also has a calendar, from its beginning or since a second before the history begins.
 */
function anchorsOf(chance: Chance, began_ms: number): Anchor[] {
  const first = { at_ms: anchor_ms, weekFrom_ms: Number.NEGATIVE_INFINITY, monthFrom_ms: Number.NEGATIVE_INFINITY };
  const dice = chance.next();
  if (dice < 0.15) return [{ ...first, calendar: calendarOf(chance) }];
  return dice < 0.35 ? withCalendar([first], calendarOf(chance), began_ms - 1_000)! : [first];
}

function nodeOf(chance: Chance): NodePlan {
  return {
    offset_ms: chance.below(10_000_000),
    rate: 0.98 + 0.04 * chance.next(),
    arrivalsFirst: chance.next() < 0.5,
    wall_ms: (chance.below(20) - 10) * 60_000,
    batch_commands_max: chance.pick([1, 3, 256, 256]),
  };
}

function requestOf(chance: Chance, index: number, nodes: number, organizations: number): RequestPlan {
  const between = betweenOf(chance);
  const engine = chance.pick(["reports", "reports", "silent", "whole"] as const);
  const large = chance.next() < 0.4;
  const part = () => ({
    wait_ms: spread(chance, 20, 4_000),
    tokens: large ? between(100, 3_000) : between(1, 150),
  });
  const inputTokensEstimate = between(1, 400);
  const plan: RequestPlan = {
    index,
    id: `req_${index + 1}`,
    at_ms: chance.next() < 0.3 ? 1_000 : between(1, comes_ms_max),
    node: chance.below(nodes),
    organization: chance.below(organizations),
    engine,
    inputTokensEstimate,
    // The estimate is far too low for one request in eight.
    inputTokens: chance.next() < 0.125 ? inputTokensEstimate * between(2, 20) : chance.below(inputTokensEstimate + 1),
    outputTokens_max: chance.next() < 0.3 ? spread(chance, 1, 9_000) : undefined,
    parts: Array.from({ length: engine === "whole" ? 1 : chance.below(20) }, part),
    breaksOff: chance.next() < 0.1,
    leaves_ms: chance.next() < 0.25 ? spread(chance, 1, 12_000) : null,
    write_ms: spread(chance, 5, 700),
    lie: engine !== "silent" && chance.next() < 0.15 ? chance.pick(lies) : null,
    stream: engine !== "whole",
    again: null,
    ends_ms: 1,
    repeats: null,
    first: `req_${index + 1}`,
    isBackground: false,
    passed: null,
  };
  return chance.next() < 0.35 || !plan.stream ? unstreamed(plan, chance, part) : plan;
}

/**
 * Gives one request in five an idempotency key. The client of such a request disconnects more often, and repeats it,
 * for the last time when there are no more faults. Some of these are background responses: half of the unstreamed ones,
 * and a quarter of the others.
 */
function keptOf(chance: Chance, plan: RequestPlan, nodes: number): RequestPlan {
  if (chance.next() >= 0.2) return plan;
  const between = betweenOf(chance);
  const leaves_ms = chance.next() < 0.5 ? spread(chance, 1, 12_000) : plan.leaves_ms;
  const repeats = Array.from({ length: between(1, 3) }, () => ({
    after_ms: spread(chance, 50, 20_000),
    node: chance.below(nodes),
  }));
  const last = { after_ms: repeat_last_ms, node: chance.below(nodes) };
  const isBackground = chance.next() < (plan.stream ? 0.25 : 0.5);
  return { ...plan, leaves_ms, repeats: [...repeats, last], isBackground };
}

/**
 * The plan of a request without streaming: its engine breaks off more often, and another engine may answer instead; an
 * answer in one piece may come late.
 */
function unstreamed(plan: RequestPlan, chance: Chance, part: () => RequestPlan["parts"][number]): RequestPlan {
  const between = betweenOf(chance);
  const isWhole = plan.engine === "whole";
  const answer = () => Array.from({ length: isWhole ? 1 : 1 + chance.below(8) }, part);
  const breaksOff = plan.breaksOff || chance.next() < 0.3;
  const again = breaksOff && chance.next() < 0.6 ? answer() : null;
  const ends_ms = chance.next() < 0.4 ? between(2_000, 12_000) : spread(chance, 1, 2_000);
  const isLate = isWhole && chance.next() < 0.3;
  const parts = isLate ? plan.parts.map(({ tokens }) => ({ tokens, wait_ms: between(5_000, 16_000) })) : plan.parts;
  return { ...plan, stream: false, parts, breaksOff, again, ends_ms };
}

/**
 * In one of ten histories a node freezes for a long time when one of its requests has claimed an idempotency key, most
 * often before its grant.
 */
function frozenWithClaim(chance: Chance, requests: readonly RequestPlan[]): FaultPlan[] {
  const claiming = requests.find(({ repeats }) => repeats !== null);
  if (!claiming || chance.next() >= 0.1) return [];
  const at_ms = claiming.at_ms + 2 + chance.below(20);
  return [
    { index: frozen_with_claim, kind: "freeze", at_ms, node: claiming.node, for_ms: 10_000 + chance.below(6_000) },
  ];
}

/**
 * In two of five histories one node is cut off for longer than its lease, so that another node settles its requests.
 */
function cutAlone(chance: Chance, nodes: number): FaultPlan[] {
  if (chance.next() >= 0.4) return [];
  const between = betweenOf(chance);
  const [at_ms, for_ms] = [between(1_000, 12_000), between(lease_ms + 2 * sweep_ms, 18_000)];
  return [{ index: cut_alone, kind: "cut", at_ms, for_ms, node: chance.below(nodes), silent: chance.next() < 0.5 }];
}

function faultOf(chance: Chance, index: number, nodes: number, ratesMayFail: boolean): FaultPlan {
  const between = betweenOf(chance);
  const at_ms = between(1, harm_ms_max);
  const node = chance.below(nodes);
  const restart_ms = chance.next() < 0.5 ? between(500, 6_000) : null;
  const kinds = ["crash", "crash", "drain", "freeze", "freeze", "cut", "away", "store-crash", "store-crash"] as const;
  const ratesFail = ratesMayFail && chance.next() < 0.5;
  const kind = ratesFail ? chance.pick(["rates-away", "rates-flush"] as const) : chance.pick(kinds);
  switch (kind) {
    case "crash":
      return { index, kind, at_ms, node, restart_ms };
    case "drain":
      return { index, kind, at_ms, node, restart_ms, within_ms: between(0, 5_000) };
    case "freeze":
      return { index, kind, at_ms, node, for_ms: spread(chance, 50, 25_000) };
    case "cut":
      return { index, kind, at_ms, node, for_ms: spread(chance, 50, 25_000), silent: chance.next() < 0.5 };
    case "away":
    case "store-crash":
      return { index, kind, at_ms, for_ms: chance.next() < 0.3 ? between(8_000, 22_000) : spread(chance, 50, 15_000) };
    case "rates-away":
      return { index, kind, at_ms, for_ms: spread(chance, 50, 15_000) };
    case "rates-flush":
      return { index, kind, at_ms };
  }
}
