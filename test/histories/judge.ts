// The judge observes a history (a simulated run) from outside: it knows all requests, answers, forwarded tokens and
// reports, and names the first rule that is broken.

import type { Calendar } from "../../src/admin/store/calendar.ts";
import type { InferenceEvent } from "../../src/core/inference/event.ts";
import type { Fault } from "../../src/core/inference/fault.ts";
import { type Command, type LedgerAnswer, type SubjectReading, windowKinds } from "../../src/core/store/ledger.ts";
import type { RateAnswer } from "../../src/core/store/rates.ts";
import type { Ending } from "../../src/core/usage/record.ts";
import type { OwnLimits } from "../core/store/budget-model.ts";
import type { ModelRecord } from "../core/store/ledger-model.ts";
import { type Account, accountOf, type Cell, promptNanosOf } from "./account.ts";
import { Books } from "./books.ts";
import { BudgetBooks, type BudgetChange } from "./budgets.ts";
import { type Counts, noCounts } from "./counts.ts";
import { judgeLimits, judgeStanding } from "./decisions.ts";
import type { Asked } from "./kept-client.ts";
import { KeptJudge } from "./kept-judge.ts";
import type { Node } from "./node.ts";
import { countPassed, judgePassedHold } from "./passed.ts";
import { costOf, prices } from "./prices.ts";
import { endedSince } from "./raises.ts";
import type { Rule, Violation } from "./rules.ts";
import { lease_ms, type RequestPlan } from "./scenario.ts";
import type { Entry } from "./store.ts";
import {
  isHindered,
  isSetBack,
  judgeBooked,
  judgeCharge,
  judgeDeparture,
  judgeLate,
  judgeRate,
  judgeRateRefusal,
  judgeRecovery,
  retry_ms,
  wasSet,
  wasSetUnseen,
} from "./verdict.ts";
import type { World } from "./world.ts";

export class Judge {
  violation: Violation | null = null;
  readonly counts: Counts = { ...noCounts };
  readonly accounts = new Map<string, Account>();
  readonly #books: Books;
  readonly #budgets: BudgetBooks;
  readonly #kept: KeptJudge;
  #flushes = 0;

  constructor(readonly world: World) {
    this.#budgets = new BudgetBooks(world.budgets, this.accounts, this.say);
    const { accounts, counts, say } = this;
    this.#kept = new KeptJudge({ world, accounts, counts, say, flushes: () => this.#flushes });
    this.#books = new Books(world, this.accounts, this.say, (account, record) => this.#recorded(account, record));
  }

  /** Reports a violation; only the first one counts. */
  readonly say = (rule: Rule, sentence: string): void => {
    this.violation ??= { rule, sentence };
  };

  // The functions below are called for actions of nodes.

  asked(plan: RequestPlan, node: Node): Account {
    const { scenario, time } = this.world;
    const account = accountOf(plan, node, scenario.organizations[plan.organization]!, time.now_ms);
    this.accounts.set(plan.id, account);
    return account;
  }

  /** Called when a node sends a batch to the store. */
  sent(commands: readonly Command[]): void {
    for (const command of commands) {
      const account = this.accounts.get(command.requestId);
      if (!account) continue;
      judgeLimits(this.world, account, command, this.say);
      judgePassedHold(account.plan, command, this.say);
      if (command.verb === "grow") account.askedNanos = Math.max(account.askedNanos, command.nanosTotal);
      if (command.verb !== "admit") continue;
      const nanos = command.inputNanos + costOf(command.outputTokens, command.prices.output);
      account.askedNanos = Math.max(account.askedNanos, nanos);
    }
  }

  /** Called when the answers to a batch have reached its node. */
  answered(commands: readonly Command[], answers: readonly LedgerAnswer[]): void {
    for (const [index, command] of commands.entries()) {
      const account = this.accounts.get(command.requestId);
      const { answer } = answers[index]!;
      if (!account) continue;
      if (command.verb === "admit" && answer === "granted") account.grantKnown = true;
      if (command.verb === "settle") account.settlementKnown = true;
      if (command.verb === "checkpoint" && answer === "extended")
        account.checkpointKnown = Math.max(account.checkpointKnown, command.usage.outputTokens);
    }
  }

  admitted(account: Account): void {
    account.admittedAt_ms = this.world.time.now_ms;
    account.deliveredAt_ms = this.world.time.now_ms;
    judgeRate(this.accounts.values(), account, this.#flushes, this.say);
  }

  refused(account: Account, fault: Fault): void {
    const { plan, node, refusals } = account;
    account.refused = fault.code;
    account.refusedAt_ms = this.world.time.now_ms;
    account.over = true;
    this.counts.refused += 1;
    this.world.tell(() => `${plan.id} is refused: ${fault.code}`);
    const by = (...answers: LedgerAnswer["answer"][]) => answers.some((answer) => refusals.has(answer));
    const stranger = () => this.say("refusal", `${plan.id} was refused as ${fault.code}, and not by the store`);
    switch (fault.code) {
      case "usage_limit_reached":
        // A request that by itself exceeds the limit of a minute has this code as well.
        if (fault.details.body?.limit === "tokens_per_minute")
          judgeRateRefusal(this.world, this.accounts.values(), account, this.say);
        else if (!by("exhausted")) stranger();
        return;
      case "usage_reserved":
        if (!by("reserved")) stranger();
        return;
      case "concurrency_limit_exceeded":
        if (!by("concurrency")) stranger();
        return;
      case "rate_limit_exceeded":
        judgeRateRefusal(this.world, this.accounts.values(), account, this.say);
        return;
      case "storage_unavailable":
        if (!isHindered(this.world, node, account.askedAt_ms - retry_ms) && !node.drains)
          this.say("available", `${plan.id} was refused as ${fault.code}, and nothing stood in its way`);
        return;
      default:
        this.say("available", `${plan.id} was refused as ${fault.code}: ${fault.message} ${String(fault.cause)}`);
    }
  }

  /** Called when a batch of events has passed the meter, which counts the usage. */
  forwards(account: Account, batch: readonly InferenceEvent[]): void {
    if (batch.some(({ type }) => type === "response-start")) this.#restarts(account);
    let tokens = account.passed;
    for (const event of batch) tokens = Math.max(tokens, account.tokensOf.get(event) ?? 0);
    if (tokens > account.passed) this.#passes(account, tokens);
    if (account.plan.stream || batch.at(-1)?.type === "response-end") this.#delivers(account);
    if (!batch.some((event) => account.reports.has(event))) return;
    account.reported = true;
    account.promptNanos = Math.max(account.promptNanos, costOf(account.plan.inputTokens, prices.input));
  }

  /** Called when the bytes of a batch of events were written to the client. */
  written(account: Account): void {
    const { id } = account.plan;
    const { store, time } = this.world;
    const record = store.model.records.get(id);
    const hold = store.model.holds.get(id);
    if (isSetBack(account, time.now_ms) || wasSetUnseen(this.world, account.askedAt_ms)) return;
    if (record?.recovered) this.say("lease", `${id} was forwarded after another had settled it`);
    else if (!record && !hold) this.say("lease", `${id} was forwarded, and its hold was gone`);
    else if (!record && hold && hold.leaseUntil_ms <= store.now_ms && !wasSet(this.world, time.now_ms - lease_ms))
      this.say("lease", `${id} was forwarded ${store.now_ms - hold.leaseUntil_ms} ms after its lease`);
  }

  /** Called when the request's node gives up the hold, which it believes to be lost. */
  lost(account: Account): void {
    const { plan, node, setBackAt_ms, askedAt_ms } = account;
    account.isLost = true;
    this.counts["given up for lost by their node"] += 1;
    if (!plan.stream) this.counts["unstreamed answers whose lease was lost"] += 1;
    this.world.tell(() => `${plan.id} is lost to its node`);
    if (setBackAt_ms !== null || wasSetUnseen(this.world, askedAt_ms)) return;
    if (!isHindered(this.world, node, this.world.time.now_ms - lease_ms - retry_ms) && !node.drains)
      this.say("available", `${plan.id} lost its lease, and nothing stood in its way`);
  }

  ended(account: Account, ending: Ending, kept: { isLeft: boolean; isKept: boolean } | null): void {
    account.ending = ending;
    account.endedAt_ms = this.world.time.now_ms;
    if (kept) this.#kept.ended(account, ending, kept);
    if (ending.errorCode === "internal_error" && !account.hasNoLog)
      this.say("available", `${account.plan.id} was ended by a defect`);
    if (ending.reportRejected) this.counts["reports that were not believed"] += 1;
    if (ending.stoppedBy) this.counts["cut short at a window's end"] += 1;
    if (ending.errorCode === "revoked_api_key") this.counts["ended by a revocation"] += 1;
    judgeDeparture(this.world, account, this.say);
    if (account.plan.stream || ending.outcome !== "cancelled") return;
    const isWhole = account.plan.engine === "whole" && account.passed > 0;
    this.counts[isWhole ? "unstreamed answers that came whole for nobody" : "unstreamed answers that were left"] += 1;
  }

  /** Called when an engine broke off an answer that is not streamed. */
  broke(account: Account, isBegunAnew: boolean): void {
    this.world.tell(() => `the engine of ${account.plan.id} breaks off${isBegunAnew ? ", and another begins" : ""}`);
    this.counts["unstreamed answers whose engine broke off"] += 1;
    if (isBegunAnew) this.counts["unstreamed answers that another engine began anew"] += 1;
  }

  settled(account: Account): void {
    account.over = true;
  }

  // The functions below are called for the answers that clients with an idempotency key get.

  asksWithKey(asked: Asked): void {
    this.#kept.asks(asked);
  }

  hasItsAnswer(asked: Asked): void {
    this.#kept.isAnswered(asked);
  }

  repeated(asked: Asked, runId: string, got: Parameters<KeptJudge["repeated"]>[2]): void {
    this.#kept.repeated(asked, runId, got);
  }

  fetched(asked: Asked, runId: string, response: Parameters<KeptJudge["fetched"]>[2]): void {
    this.#kept.fetched(asked, runId, response);
  }

  refusedToRepeat(asked: Asked, fault: Fault): void {
    this.#kept.refused(asked, fault);
  }

  // The functions below are called for actions of the store.

  /** Called when the store carried out a batch that was sent at `sentAt_ms`, even if its node gets no answer. */
  carriedOut(commands: readonly Command[], answers: readonly LedgerAnswer[], entry: Entry, sentAt_ms: number): void {
    for (const [index, command] of commands.entries()) {
      const account = this.accounts.get(command.requestId);
      const answer = answers[index]!;
      if (!account) continue;
      if (command.verb === "admit") {
        if (answer.answer === "granted" && !account.grant) this.#granted(answer);
        this.#books.decided(account, command, answer, entry);
      }
      if (command.verb === "grow" && answer.answer === "granted") this.counts.grown += 1;
      if (command.verb === "checkpoint" && answer.answer === "extended")
        account.checkpoints.push({ tokens: command.usage.outputTokens, sentAt_ms, entry });
    }
    // A checkpoint changes no held or used nanos; if one did, the next sums would show it.
    if (commands.some(({ verb }) => verb !== "checkpoint")) this.#addUp(commands);
  }

  /**
   * Called when the store carried out a sweep. `hasWaited`: the node did not believe the store's clock, so the sweep
   * settled nothing.
   */
  recovered(settled: number, hasWaited: boolean): void {
    if (hasWaited) this.counts["sweeps that met a clock that was set"] += 1;
    if (settled > 0) this.#addUp([]);
  }

  #addUp(commands: Parameters<Books["addUp"]>[0]): void {
    this.#books.addUp(commands);
    this.#budgets.addUp(this.world.store.model, true);
  }

  crashed(undone: readonly Entry[]): void {
    this.counts["transactions undone by a crash"] += undone.length;
    this.#wokeUp();
  }

  /** Called when a replica took over: it lacks the confirmed transactions that it had not received, and no others. */
  wokeInThePast(undone: readonly Entry[]): void {
    const { now_ms } = this.world.time;
    const confirmed = undone.filter(({ durableAt_ms }) => durableAt_ms <= now_ms);
    this.counts["confirmed transactions lost in a failover"] += confirmed.length;
    const { records, holds } = this.world.store.model;
    for (const account of undone.flatMap(({ requests }) => requests.map((id) => this.accounts.get(id)))) {
      if (!account) continue;
      account.setBackAt_ms = now_ms;
      account.checkpointKnown = 0;
      if (!records.has(account.plan.id)) account.settlementKnown = false;
      if (!holds.has(account.plan.id)) account.grantKnown = false;
    }
    this.#wokeUp();
  }

  #wokeUp(): void {
    this.#books.crashed();
    this.#budgets.addUp(this.world.store.model, false);
  }

  // The functions below are called for actions of administrators.

  anchored(organizationId: string, anchor_ms: number): void {
    this.#books.anchored(organizationId, anchor_ms);
  }

  calendared(organizationId: string, calendar: Calendar | null): void {
    this.counts["calendars changed"] += 1;
    this.#books.calendared(organizationId, calendar);
  }

  adjusted(entryId: string, organizationId: string, kind: Cell["kind"], nanos: number, entry: Entry): void {
    this.counts["windows adjusted"] += 1;
    this.#books.adjusted(entryId, organizationId, kind, nanos, entry);
  }

  planned(organizationId: string): void {
    if (this.#runs(organizationId)) this.counts["plans changed while requests ran"] += 1;
  }

  budgeted(organizationId: string, kind: BudgetChange["kind"]): void {
    if (!this.#runs(organizationId)) return;
    if (kind === "raise") {
      this.counts["raises set or ended while requests ran"] += 1;
      return;
    }
    if (this.world.budgets.get(organizationId)!.subjects.length === 0) return;
    if (kind === "team") this.counts["keys that changed their team while requests ran"] += 1;
    else if (kind === "models") this.counts["limits for models changed while requests ran"] += 1;
    else if (kind === "person") this.counts["people who were moved or limited while requests ran"] += 1;
    else this.counts["limits of keys and teams changed while requests ran"] += 1;
  }

  /** Counts the raises that were set earlier and may have ended by now. */
  raiseEnded(organizationId: string, { raises }: OwnLimits): void {
    const now = this.world.store.ownLimits(organizationId).raises;
    const lapsed = endedSince(now, Number.NEGATIVE_INFINITY, this.world.store.now_ms);
    if (this.#runs(organizationId) && lapsed.some((id) => now?.get(id) === raises?.get(id)))
      this.counts["raises that ran out while requests ran"] += 1;
  }

  #runs(organizationId: string): boolean {
    const { holds } = this.world.store.model;
    return [...holds.values()].some(({ facts }) => facts.organizationId === organizationId);
  }

  /**
   * Called when the counter of sliding rates answered. `sharedAmong`: the number of processes among which the limits
   * were divided, if a node counted against its own share; null if Redis counted.
   */
  counted(requestId: string, answer: RateAnswer, sharedAmong: number | null): void {
    const account = this.accounts.get(requestId)!;
    account.ratesAskedAt_ms = this.world.time.now_ms;
    if (answer.answer !== "taken") return;
    account.ratesTakenAt_ms = this.world.time.now_ms;
    account.ratesSharedAmong = sharedAmong;
    if (sharedAmong !== null) this.counts["taken of a node's share of the rates"] += 1;
  }

  ratesFlushed(): void {
    this.#flushes += 1;
  }

  // Called at the end of the history.

  finish(): void {
    this.#kept.finish();
    const { holds, records } = this.world.store.model;
    if (holds.size > 0) this.say("holds", `${[...holds.keys()].join(", ")}: held for ever`);
    for (const account of this.accounts.values()) {
      const { plan, node, grant, settlementKnown, over } = account;
      const record = records.get(plan.id);
      if (record?.recovered) judgeBooked(this.world, account, record, this.say);
      if (grant && !record) this.say("record", `${plan.id} was admitted, and has no record`);
      if (settlementKnown && !record) this.say("record", `${plan.id} was settled, and has no record`);
      if (!over && !node.clock.crashed) this.say("available", `${plan.id} never ended, though its node runs`);
    }
  }

  #restarts(account: Account): void {
    account.passed = 0;
    account.reported = false;
    account.promptNanos = promptNanosOf(account.plan);
  }

  #delivers(account: Account): void {
    if (account.passed <= account.delivered) return;
    account.delivered = account.passed;
    account.deliveredAt_ms = this.world.time.now_ms;
  }

  #passes(account: Account, tokens: number): void {
    const { plan, grant, promptNanos } = account;
    const { store, time } = this.world;
    this.world.tell(() => `${plan.id} forwards up to ${tokens} tokens`);
    judgeStanding(this.world, account, tokens, this.say);
    // If the store was set back and has forgotten the grant, the node still believes that it has the grant, and may
    // forward tokens.
    const believes = isSetBack(account, time.now_ms);
    if (!believes && (!grant || grant.entry.lost || grant.entry.durableAt_ms > time.now_ms))
      this.say("grant", `${plan.id} forwarded ${tokens} tokens before its grant was durable`);
    const hold = store.model.holds.get(plan.id);
    const needs = promptNanos + costOf(tokens, prices.output);
    if (hold && needs > hold.nanos && account.setBackAt_ms === null)
      this.say("grant", `${plan.id} forwarded ${tokens} tokens, which takes ${needs} nanos, and held ${hold.nanos}`);
    account.passed = tokens;
  }

  #granted(answer: LedgerAnswer): void {
    this.counts.granted += 1;
    if ("source" in answer && answer.source === "extra") this.counts["granted on extra usage"] += 1;
    if ("windows" in answer && Object.values(answer.windows).some(({ isShort }) => isShort))
      this.counts["granted in a window that a change of the calendar made shorter"] += 1;
    if ("subjects" in answer && answer.subjects?.some(isForModels)) this.counts["granted under limits for models"] += 1;
  }

  #recorded(account: Account, record: ModelRecord): void {
    countPassed(account.plan, record.charged, this.counts);
    if (record.lateOf !== undefined) {
      this.counts["settled late by their node"] += 1;
      judgeLate(this.world, account, record, this.say);
      return;
    }
    if (record.recovered && !account.plan.stream) this.counts["unstreamed answers that were recovered"] += 1;
    if (record.recovered) this.counts.recovered += 1;
    else this.counts["settled by their node"] += 1;
    const { now_ms } = this.world.store;
    if (
      record.windows &&
      (["session", "week", "month"] as const).some((kind) => record.windows![kind].endsAt_ms <= now_ms)
    )
      this.counts["ended after a window of theirs"] += 1;
    if (!account.grant) {
      if (record.charged !== 0) this.say("charge", `${account.plan.id} was never admitted, and charged`);
    } else if (record.recovered) judgeRecovery(this.world, account, record, this.say);
    else judgeCharge(this.world, account, record, this.say);
  }
}

/** Whether the subject is a pattern of models that has any limit at this moment. */
const isForModels = ({ models, windows, concurrentRequests }: SubjectReading): boolean =>
  models !== undefined && (concurrentRequests !== null || windowKinds.some((kind) => windows[kind].limit !== null));
