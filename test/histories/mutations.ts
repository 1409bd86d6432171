// Mutations that show that histories notice defects: each takes a rule out (docs/design/metering.md, The nine rules), while
// what the histories try stays the same. A history with one of them must end in a violation.

import type { Checkpoint, Command, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { Rates } from "../../src/core/store/rates.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import type { KeptAnswers } from "../../src/features/responses/store/kept.ts";
import { LedgerModel } from "../core/store/ledger-model.ts";
import { byOtherLimits, countingIn, ledgerOf, OneByOne, unlimited } from "./one-by-one.ts";
import { costOf, prices } from "./prices.ts";
import type { Rule } from "./rules.ts";
import type { FaultPlan } from "./scenario.ts";
import type { StoreDefects } from "./store.ts";
import type { NodeLedger } from "./wire.ts";

/** The defects of a history's store or nodes. */
export interface Defects {
  store?: StoreDefects;
  /** Returns the defective ledger that is put between a node and its wire. */
  ledger?(ledger: NodeLedger, clock: Clock): NodeLedger;
  rates?(rates: Rates): Rates;
  /** Replaces some of the functions through which a node reads and writes the rows of kept answers. */
  kept?(answers: KeptAnswers): Partial<KeptAnswers>;
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

/** Breaks rule 2: only the session is looked at, not all three windows. */
const LooksAtTheSessionAlone = byOtherLimits(["admit", "grow", "settle"], (limits) => ({
  ...limits,
  ...{ week: null, month: null },
}));

/** Breaks rule 3: a growth is not checked. */
const GrowsUnchecked = byOtherLimits(["grow"], () => unlimited);

/** Breaks rule 3: a growth counts for the organization alone. */
const GrowsBesideTheBudget = countingIn("grow", () => false);

/** Breaks rule 5: a settlement leaves the hold behind in a limit for models. */
const ForgetsPatterns = countingIn("settle", ({ models }) => models === undefined);

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

/** Breaks rule 5: a request that was recovered is over, whatever its node reports. */
class ForgetsTheRest extends LedgerModel {
  protected override settleLate(): LedgerAnswer {
    return { answer: "already" };
  }
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

const settled = (commands: Command[]): LedgerAnswer[] =>
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

/** Breaks rule 6: no node recovers lapsed holds. */
const neverSweeps = (ledger: NodeLedger): NodeLedger => ({
  ...ledger,
  recover: (_, range) => ledger.recover(0, range),
});

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

/** Changes each command of a search on its way from the node to the store. */
const searches =
  (changed: (command: Command) => Command): NonNullable<Defects["ledger"]> =>
  (ledger) => ({
    ...ledger,
    run: (commands) =>
      ledger.run(
        commands.map((command) =>
          "operation" in command && command.operation === "rerank" ? changed(command) : command,
        ),
      ),
  });

const searchIsNotHeld = searches((command) =>
  command.verb === "admit" ? { ...command, inputNanos: command.inputNanos % costOf(1, prices.search) } : command,
);

const failedSearchIsCharged = searches((command) =>
  command.verb === "settle" && command.outcome === "failed"
    ? { ...command, nanos: command.nanos + costOf(1, prices.search) }
    : command,
);

export const mutations: Record<string, Mutation> = {
  "no barrier behind a batch": { rule: 1, defects: { store: { withoutBarrier: true } }, seenAs: ["grant", "durable"] },
  "one window is looked at, not three": { rule: 2, defects: ledgerOf(LooksAtTheSessionAlone), seenAs: ["limit"] },
  "a growth is not checked": { rule: 3, defects: ledgerOf(GrowsUnchecked), seenAs: ["limit"] },
  "a growth is not counted in a key's limit": { rule: 3, defects: ledgerOf(GrowsBesideTheBudget), seenAs: ["sums"] },
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
  "a settlement leaves its model's hold behind": { rule: 5, defects: ledgerOf(ForgetsPatterns), seenAs: ["sums"] },
  "a settlement whose answer was lost is not sent again": {
    rule: 5,
    defects: { ledger: settlesOnce },
    seenAs: ["abandoned", "checkpoint"],
  },
  "what was forwarded after the last checkpoint is in no book": {
    rule: 5,
    defects: ledgerOf(ForgetsTheRest),
    seenAs: ["late"],
  },
  "nobody recovers": { rule: 6, defects: { ledger: neverSweeps }, seenAs: ["holds"] },
  "a node knows no deadline": { rule: 7, defects: { believedLease_ms: 1e9 }, seenAs: ["lease"] },
  "a refusal keeps the rates it took": { rule: 8, defects: { rates: keepsRates }, seenAs: ["rates"] },
  "a node's own clock says which window": {
    rule: 9,
    defects: { store: { nodeClockDecides: true } },
    seenAs: ["windows", "lease"],
  },
  "a key is taken by each that asks": {
    rule: "docs/protocols.md, Repeating a request",
    defects: {
      kept: (answers) => ({
        begin: (kept) => answers.begin({ ...kept, claim: { key: kept.requestId, body: kept.claim!.body } }),
      }),
    },
    seenAs: ["key"],
  },
  "a key stays taken after the failure of its node was read": {
    rule: "docs/protocols.md, Repeating a request",
    defects: { kept: () => ({ abandon: async () => true }) },
    seenAs: ["repeat", "available"],
  },
  "a kept answer ends with its client": {
    rule: "docs/protocols.md, Repeating a request",
    defects: { isNeverDetached: true },
    seenAs: ["detached"],
  },
  "a search is not held": {
    rule: "docs/design/usage.md, Holds",
    defects: { ledger: searchIsNotHeld },
    seenAs: ["passed"],
  },
  "a search of an answer that was not delivered is charged": {
    rule: "docs/design/usage.md, Holds",
    defects: { ledger: failedSearchIsCharged },
    seenAs: ["delivered", "charge", "refusal"],
  },
};
