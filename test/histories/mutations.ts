// Mutations: deliberate defects, each of which removes a rule of the protocol (docs/design/metering.md, The nine
// rules), while the simulated faults stay the same. They show that histories notice defects: a history with a mutation
// must end in a violation.

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
  /** The defect: a run whose answer is kept ends when its client disconnects. */
  isNeverDetached?: boolean;
  /** The defect: a running request knows only the plan under which it was admitted. */
  keepsPlan?: boolean;
  /** The defect: the object of a plan stays the same when the plan changes, so that a node cannot see the change. */
  hidesChange?: boolean;
  /** The defect: nodes learn only of changed limits of subjects for which this is true; if absent, of all. */
  hearsOf?(subject: string): boolean;
  /** The defect: nodes do not learn which raises have ended. */
  hearsOfNoEnd?: boolean;
  /** The defect: nodes read plans only when they start, and do not ask which keys were revoked. */
  followsNobody?: boolean;
  /** The defect: nodes assume this lease, while the store's lease stays the same. */
  believedLease_ms?: number;
}

export interface Mutation {
  /** The number of the protocol's rule, 1 to 9; or the page and heading of another rule. */
  rule: number | string;
  /** The kinds of faults that reveal the mutation, in histories with no other kind. */
  under?: readonly FaultPlan["kind"][];
  defects: Defects;
  /** The history's first violation must be of one of these rules. */
  seenAs: readonly Rule[];
}

/** Breaks rule 2: only the session's limit is checked, not those of all three windows. */
const LooksAtTheSessionAlone = byOtherLimits(["admit", "grow", "settle"], (limits) => ({
  ...limits,
  ...{ week: null, month: null },
}));

/** Breaks rule 3: a growth is not checked. */
const GrowsUnchecked = byOtherLimits(["grow"], () => unlimited);

/** Breaks rule 3: a growth counts in the organization's windows alone. */
const GrowsBesideTheBudget = countingIn("grow", () => false);

/** Breaks rule 5: a settlement does not release the hold in limits for models. */
const ForgetsPatterns = countingIn("settle", ({ models }) => models === undefined);

/** Breaks rule 5: each further settlement of a request adds to the used nanos. */
class SettlesAgain extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const windows = this.records.get(command.requestId)?.windows;
    if (command.verb === "settle" && windows) windows.session.total.used += command.nanos;
    return super.one(command);
  }
}

/** Breaks rule 5: the whole cost of a request is charged, even if the limits leave less. */
const ChargesPastLimits = byOtherLimits(["settle"], () => unlimited);

/** Breaks rule 5: a recovered request stays as it was recovered, whatever usage its node reports later. */
class ForgetsTheRest extends LedgerModel {
  protected override settleLate(): LedgerAnswer {
    return { answer: "already" };
  }
}

/**
 * Takes the commands that `some` selects out of each batch: `hear` handles them, and returns the answers for their
 * node.
 */
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

/** Breaks rule 5: a settlement is sent only once, even if no answer comes back. */
function settlesOnce(ledger: NodeLedger): NodeLedger {
  return apart(
    ledger,
    (command) => command.verb === "settle",
    (commands) => ledger.run(commands).catch(() => settled(commands)),
  );
}

/** Breaks rule 5: a request that gives up waiting for its grant does not settle. */
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

/** Breaks rule 8: a refused request does not give back the rates that it had taken. */
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

/** Changes each command of a rerank request, which costs searches, on its way from the node to the store. */
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
