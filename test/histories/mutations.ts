// Mutations that show what histories are good for: each takes a rule out (docs/design/metering.md, The nine rules), in one
// way or several, while what the histories try stays the same. A history with one of them must end in a violation.

import type { Reservation } from "../../src/core/admission/reservation.ts";
import { noUsage } from "../../src/core/inference/usage.ts";
import type {
  Checkpoint,
  ClockRange,
  Command,
  LedgerAnswer,
  Settle,
  WindowReadings,
} from "../../src/core/store/ledger.ts";
import type { Rates } from "../../src/core/store/rates.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import type { MeteredHold } from "../../src/core/usage/meter.ts";
import type { KeptAnswers } from "../../src/features/responses/store/kept.ts";
import { LedgerModel } from "../core/store/ledger-model.ts";
import { budgetMutations } from "./budget-mutations.ts";
import { lateMutations } from "./late-mutations.ts";
import { byOtherLimits, ledgerOf, OneByOne, recovering, unlimited } from "./one-by-one.ts";
import { costOf } from "./prices.ts";
import type { Rule } from "./rules.ts";
import { type FaultPlan, lease_ms } from "./scenario.ts";
import type { StoreDefects } from "./store.ts";
import type { NodeLedger } from "./wire.ts";

/** The defects of a history's store or nodes. */
export interface Defects {
  store?: StoreDefects;
  /** Returns the defective ledger that is put between a node and its wire. */
  ledger?(ledger: NodeLedger, clock: Clock): NodeLedger;
  /** Returns what replaces functions of the hold between the meter and the reservation. */
  hold?(reservation: Reservation): Partial<MeteredHold>;
  rates?(rates: Rates): Rates;
  /** The number of processes among which a node divides its limits. */
  processes?(): number;
  /** Replaces some of the functions through which a node reads and writes the rows of kept answers. */
  kept?(answers: KeptAnswers): Partial<KeptAnswers>;
  /** A run is settled some seconds before its log is complete. */
  endsLogLate?: boolean;
  /** A run whose answer is kept ends with its client. */
  isNeverDetached?: boolean;
  /** A running request knows only the plan of its admission. */
  keepsPlan?: boolean;
  /** The plan's object stays the same when the plan changes. */
  hidesChange?: boolean;
  /** Whether nodes learn of changed limits of this subject; absent: they learn of all changes. */
  hearsOf?(subject: string): boolean;
  /** Nodes do not learn which raises have ended. */
  hearsOfNoEnd?: boolean;
  /** Nodes read plans only when they begin, and do not ask which keys were revoked. */
  followsNobody?: boolean;
  /** The lease that nodes count with, while the store's lease stays what it is. */
  believedLease_ms?: number;
}

export interface Mutation {
  /** The protocol's rule, 1 to 9; or where the rule is written. */
  rule: number | string;
  /** The kinds of faults under which the mutation shows, in histories with no other kind. */
  under?: readonly FaultPlan["kind"][];
  defects: Defects;
  /** The rules of which the first violation may break any. */
  seenAs: readonly Rule[];
}

/** Breaks rule 2: a request that has a hold already is held for once more by a second admission. */
class AdmitsAgain extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const hold = this.holds.get(command.requestId);
    if (command.verb === "admit" && hold)
      for (const { total } of this.billed(command.requestId)) total.held += hold.nanos;
    return super.one(command);
  }
}

/** Breaks rule 2: a request that has a record already is admitted all the same. */
class AdmitsTheEnded extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const record = command.verb === "admit" ? this.records.get(command.requestId) : undefined;
    if (!record) return super.one(command);
    this.records.delete(command.requestId);
    const answer = super.one(command);
    this.records.set(command.requestId, record);
    return answer;
  }
}

/** Breaks rule 2: only the session is looked at, not all three windows. */
const LooksAtTheSessionAlone = byOtherLimits(["admit", "grow", "settle"], (limits) => ({
  ...limits,
  ...{ week: null, month: null },
}));

/** Breaks rule 3: a growth carries what is to be added, not the total. */
class GrowsByDifference extends OneByOne {
  readonly #differences = new Map<string, number>();
  protected override one(command: Command): LedgerAnswer {
    const hold = this.holds.get(command.requestId);
    if (command.verb !== "grow" || !hold) return super.one(command);
    const name = `${command.requestId} ${command.nanosTotal}`;
    const difference = this.#differences.get(name) ?? command.nanosTotal - hold.nanos;
    this.#differences.set(name, difference);
    return super.one({ ...command, nanosTotal: hold.nanos + difference });
  }
}

/** Breaks rule 3: a growth is not checked. */
const GrowsUnchecked = byOtherLimits(["grow"], () => unlimited);

/** Breaks rule 4: the checkpoint that arrives last counts, whatever came before it. */
class Lowers extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const answer = super.one(command);
    const hold = this.holds.get(command.requestId);
    if (command.verb === "checkpoint" && hold) hold.usage = command.usage;
    return answer;
  }
}

/** Breaks rule 4: a checkpoint of a request that is over brings its hold back. */
class Revives extends OneByOne {
  readonly #ended = new Map<string, ReturnType<LedgerModel["holds"]["get"]> & object>();
  protected override one(command: Command): LedgerAnswer {
    const ended = this.#ended.get(command.requestId);
    if (command.verb === "checkpoint" && ended && !this.holds.has(command.requestId)) {
      this.holds.set(command.requestId, ended);
      for (const { total } of this.billed(command.requestId)) total.held += ended.nanos;
    }
    this.#remember();
    return super.one(command);
  }
  override recover(limit: number, range?: ClockRange): number {
    this.#remember();
    return super.recover(limit, range);
  }
  #remember(): void {
    for (const [id, hold] of this.holds) this.#ended.set(id, hold);
  }
}

/** Breaks rule 5: each settlement of a request adds to what is used. */
class SettlesAgain extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const windows = this.records.get(command.requestId)?.windows;
    if (command.verb === "settle" && windows) windows.session.total.used += command.nanos;
    return super.one(command);
  }
}

/** Breaks rule 5: all that a request came to is charged, whatever the limits leave. */
const ChargesPastLimits = byOtherLimits(["settle"], () => unlimited);

/** Breaks rule 6: recovery takes every hold, also those whose lease has not lapsed. */
const RecoversTheLiving = recovering((hold, now_ms) => {
  hold.leaseUntil_ms = Math.min(hold.leaseUntil_ms, now_ms);
});

/** Breaks rule 6: two recoveries at once both charge. */
class RecoversTwice extends LedgerModel {
  override recover(limit: number, range?: ClockRange): number {
    const before = new Set(this.records.keys());
    const count = super.recover(limit, range);
    for (const [id, { windows, charged, source }] of this.records)
      if (windows && !before.has(id)) (source === "extra" ? windows.extra : windows.week).total.used += charged;
    return count;
  }
}

/** Breaks rule 6: recovery charges nothing. */
const RecoversForNothing = recovering((hold, now_ms) => {
  if (hold.leaseUntil_ms <= now_ms) hold.usage = noUsage;
});

/** Breaks rule 6: where the whole hold of a lapsed lease is charged, it is charged for an unstreamed answer as well. */
const ChargesTheUndelivered = recovering((hold) => {
  hold.facts = { ...hold.facts, stream: true };
});

/** Breaks rule 9: a request is booked in the windows in which it ends, not in those in which it was admitted. */
class BooksWhereItEnds extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    if (command.verb === "settle") this.#move(command);
    return super.one(command);
  }
  #move({ requestId, organizationId, limits }: Settle): void {
    const hold = this.holds.get(requestId);
    if (!hold) return;
    const now = this.readings(organizationId, limits);
    const windows = this.windows(organizationId);
    for (const kind of ["session", "week", "month"] as const) {
      const startsAt_ms = now[kind].startsAt.getTime();
      const window = windows.find((one) => one.kind === kind && one.startsAt_ms === startsAt_ms);
      if (window) hold.windows = { ...hold.windows, [kind]: window };
    }
  }
}

/** Breaks rule 9: a window that is over is set to zero, although requests still run in it. */
class ZeroesTheOver extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    for (const { endsAt_ms, total } of this.windows(command.organizationId))
      if (endsAt_ms <= this.now_ms()) Object.assign(total, { used: 0, held: 0 });
    return super.one(command);
  }
}

const emptyWindows = (): WindowReadings => {
  const reading = { limit: null, used: 0, held: 0, startsAt: new Date(0), resetAt: new Date(1) };
  return {
    session: { kind: "session", ...reading },
    week: { kind: "week", ...reading },
    month: { kind: "month", ...reading },
  };
};

/** Breaks rule 7: the node takes what it has asked for as granted. */
function takenForGranted(ledger: NodeLedger): NodeLedger {
  return {
    ...ledger,
    run(commands) {
      const truth = ledger.run(commands);
      if (!commands.every((command) => command.verb === "admit")) return truth;
      truth.catch(() => {});
      return Promise.resolve(
        commands.map(({ inputNanos, outputTokens, prices }) => ({
          answer: "granted",
          nanos: inputNanos + costOf(outputTokens, prices.output),
          outputTokens,
          source: "plan",
          windows: emptyWindows(),
          at: new Date(0),
        })),
      );
    },
  };
}

/** Takes some commands out of each batch: `hear` returns the answers that their node gets. */
export function apart(
  ledger: NodeLedger,
  some: (command: Command) => boolean,
  hear: (commands: Command[]) => Promise<LedgerAnswer[]>,
): NodeLedger {
  return {
    ...ledger,
    async run(commands) {
      const theirs = commands.filter(some);
      const others = commands.filter((command) => !some(command));
      const [ours, rest] = await Promise.all([
        theirs.length > 0 ? hear(theirs) : [],
        others.length > 0 ? ledger.run(others) : [],
      ]);
      return commands.map((command) => (some(command) ? ours.shift()! : rest.shift()!));
    },
  };
}

export const settled = (commands: Command[]): LedgerAnswer[] =>
  commands.map(() => ({ answer: "settled", charged: 0, uncharged: 0 }));

/** Breaks rule 5: a settlement is sent once, whatever comes back. */
function settlesOnce(ledger: NodeLedger): NodeLedger {
  return apart(
    ledger,
    (command) => command.verb === "settle",
    (commands) => ledger.run(commands).catch(() => settled(commands)),
  );
}

/** Breaks rule 5: a request that gives up waiting for its grant tells the store nothing. */
export function givesUpInSilence(ledger: NodeLedger): NodeLedger {
  return apart(
    ledger,
    (command) => command.verb === "settle" && command.errorCode === "storage_unavailable",
    async (commands) => settled(commands),
  );
}

/** Breaks rule 4: a node with nothing new to report does not extend its lease. */
function extendsOnlyProgress(ledger: NodeLedger): NodeLedger {
  const isIdle = (command: Command): command is Checkpoint =>
    command.verb === "checkpoint" && command.usage.outputTokens === 0;
  return apart(ledger, isIdle, async (commands) => commands.map(() => ({ answer: "extended" })));
}

/**
 * Breaks rule 6: a sweeper that was cut off from the store settles lapsed holds at once when it is back, instead of
 * waiting for a lease first.
 */
const sweepsAtOnce = (ledger: NodeLedger): NodeLedger => ({
  ...ledger,
  recover: (_, range) => ledger.recover(200, range),
});

/** Breaks rule 6: no node recovers lapsed holds. */
const neverSweeps = (ledger: NodeLedger): NodeLedger => ({
  ...ledger,
  recover: (_, range) => ledger.recover(0, range),
});

/** Breaks rule 8: a node whose request was refused refuses other requests by itself for a while. */
function refusesByHint(ledger: NodeLedger, clock: Clock): NodeLedger {
  const full = new Map<string, { answer: LedgerAnswer; until_ms: number }>();
  const known = (command: Command) => {
    const last = command.verb === "admit" ? full.get(command.organizationId) : undefined;
    return last && clock.now_ms() < last.until_ms ? last.answer : undefined;
  };
  const hinted = apart(
    ledger,
    (command) => known(command) !== undefined,
    async (commands) => commands.map((command) => known(command)!),
  );
  return {
    ...ledger,
    async run(commands) {
      const answers = await hinted.run(commands);
      for (const [index, command] of commands.entries()) {
        const answer = answers[index]!;
        if (answer.answer !== "reserved" && answer.answer !== "exhausted") continue;
        full.set(command.organizationId, { answer, until_ms: clock.now_ms() + 2_000 });
      }
      return answers;
    },
  };
}

/** Breaks rule 8: what a refused request had taken of its rates is not given back. */
function keepsRates(rates: Rates): Rates {
  return {
    ...rates,
    async take(request) {
      const answer = await rates.take(request);
      if (answer.answer !== "taken") return answer;
      const { readings } = answer;
      return { answer: "taken", readings, giveBack: async () => {}, correct: (tokens) => answer.correct(tokens) };
    },
  };
}

/**
 * A lease for nodes to believe in, so long that a node's own deadline, a tenth before the end of that lease, is the end
 * of the store's lease.
 */
const marginless_ms = lease_ms / 0.9;

export const mutations: Record<string, Mutation> = {
  "no barrier behind a batch": { rule: 1, defects: { store: { withoutBarrier: true } }, seenAs: ["grant", "durable"] },
  "totals are read before the lock is held": {
    rule: 1,
    defects: { store: { readsBeforeLock: true } },
    seenAs: ["limit"],
  },
  "an admission sent again holds again": { rule: 2, defects: ledgerOf(AdmitsAgain), seenAs: ["sums", "limit"] },
  "an admission that comes after the end runs": { rule: 2, defects: ledgerOf(AdmitsTheEnded), seenAs: ["record"] },
  "one window is looked at, not three": { rule: 2, defects: ledgerOf(LooksAtTheSessionAlone), seenAs: ["limit"] },
  "a growth carries a difference": { rule: 3, defects: ledgerOf(GrowsByDifference), seenAs: ["holds"] },
  "a growth is not checked": { rule: 3, defects: ledgerOf(GrowsUnchecked), seenAs: ["limit"] },
  "tokens leave before the hold has grown": {
    rule: 3,
    defects: {
      hold: (reservation) => ({ permits: () => true, progress: (...usage) => reservation.progress(...usage) }),
    },
    seenAs: ["grant"],
  },
  "a late checkpoint lowers the count": { rule: 4, defects: ledgerOf(Lowers), seenAs: ["checkpoint"] },
  "a late checkpoint revives a hold": { rule: 4, defects: ledgerOf(Revives), seenAs: ["record", "sums"] },
  "a checkpoint without news extends no lease": {
    rule: 4,
    defects: { ledger: extendsOnlyProgress },
    seenAs: ["lease", "abandoned"],
  },
  "a settlement that comes twice is booked twice": {
    rule: 5,
    defects: ledgerOf(SettlesAgain),
    seenAs: ["sums", "limit"],
  },
  "a settlement charges past the limits": { rule: 5, defects: ledgerOf(ChargesPastLimits), seenAs: ["limit"] },
  "a settlement whose answer was lost is not sent again": {
    rule: 5,
    defects: { ledger: settlesOnce },
    seenAs: ["abandoned", "checkpoint"],
  },
  "who gives up before the grant settles nothing": {
    rule: 5,
    defects: { ledger: givesUpInSilence },
    seenAs: ["abandoned", "checkpoint"],
  },
  "recovery does not wait for the lease": {
    rule: 6,
    defects: ledgerOf(RecoversTheLiving),
    seenAs: ["lease", "abandoned", "checkpoint"],
  },
  "recovery charges twice": { rule: 6, defects: ledgerOf(RecoversTwice), seenAs: ["sums", "limit"] },
  "recovery forgets the checkpoint": { rule: 6, defects: ledgerOf(RecoversForNothing), seenAs: ["checkpoint"] },
  "a whole hold is charged for what nobody streamed": {
    rule: 6,
    defects: ledgerOf(ChargesTheUndelivered),
    seenAs: ["delivered"],
  },
  "a sweeper that was cut off does not wait": {
    rule: 6,
    defects: { ledger: sweepsAtOnce },
    seenAs: ["abandoned", "checkpoint", "lease"],
  },
  "nobody recovers": { rule: 6, defects: { ledger: neverSweeps }, seenAs: ["holds"] },
  "tokens leave before the grant": { rule: 7, defects: { ledger: takenForGranted }, seenAs: ["grant"] },
  "a node knows no deadline": { rule: 7, defects: { believedLease_ms: 1e9 }, seenAs: ["lease"] },
  "a node's deadline has no margin": { rule: 7, defects: { believedLease_ms: marginless_ms }, seenAs: ["lease"] },
  "a hint refuses": { rule: 8, defects: { ledger: refusesByHint }, seenAs: ["refusal"] },
  "each node has the whole rates while their store is away": {
    rule: 8,
    defects: { processes: () => 1 },
    seenAs: ["rates"],
  },
  "a refusal keeps the rates it took": { rule: 8, defects: { rates: keepsRates }, seenAs: ["rates"] },
  "a request is booked in the window in which it ends": {
    rule: 9,
    defects: ledgerOf(BooksWhereItEnds),
    seenAs: ["sums"],
  },
  "a window that is over is set to zero": { rule: 9, defects: ledgerOf(ZeroesTheOver), seenAs: ["sums"] },
  "a node's own clock says which window": {
    rule: 9,
    defects: { store: { nodeClockDecides: true } },
    seenAs: ["windows", "lease"],
  },
  ...budgetMutations,
  ...lateMutations,
};
