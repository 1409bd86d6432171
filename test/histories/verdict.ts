// Judges the record of a request in a history (a simulated run) by all that the judge knows of the request.

import { leaseMargin_ms } from "../../src/core/admission/lease.ts";
import { priceOf } from "../../src/core/inference/money.ts";
import { minute_ms } from "../../src/core/store/rates.ts";
import { finish_ms } from "../../src/core/usage/departure.ts";
import { lateIdOf, type ModelRecord, sumOf } from "../core/store/ledger-model.ts";
import type { Account } from "./account.ts";
import type { Node } from "./node.ts";
import { searchNanosOf } from "./passed.ts";
import { costOf, heldInputPrice, prices } from "./prices.ts";
import type { Say } from "./rules.ts";
import { checkpoint_ms, lease_ms, sweep_ms } from "./scenario.ts";
import { reaches, type World } from "./world.ts";

/**
 * `slack_ms`: the time that a command may wait, in addition to the batch before it, which takes as long as a flush.
 * `retry_ms`: the time that it may wait after an outage for its next attempt.
 */
const slack_ms = 100;
export const retry_ms = 1_600;

/** Whether a fault has stood between this node and the stores that it needs at any time since `since_ms`. */
export function isHindered(world: World, node: Node, since_ms: number): boolean {
  const { storeTroubles, rateTroubles, time } = world;
  return [node.troubles, storeTroubles, rateTroubles].some((troubles) => reaches(troubles, since_ms, time.now_ms));
}

/**
 * Whether a failover has made the store forget something about the request, and the request's node cannot know that
 * yet. It learns of it when it is told that its hold is gone or, at the latest, at its own deadline.
 */
export function isSetBack({ setBackAt_ms }: Account, now_ms: number): boolean {
  return setBackAt_ms !== null && now_ms <= setBackAt_ms + lease_ms;
}

/** Whether the store's clock was set since `since_ms`. */
export function wasSet({ steps }: World, since_ms: number): boolean {
  return steps.some(({ at_ms }) => at_ms >= since_ms);
}

/**
 * Whether the store's clock was set to another time and back, the second change since `since_ms`, so soon that a
 * sweeper may have seen neither. The first change may have come shortly before `since_ms`: then a request that was
 * admitted in between has a lease by the other clock.
 */
export function wasSetUnseen({ steps }: World, since_ms: number): boolean {
  const recent = steps.filter(({ at_ms }) => at_ms >= since_ms - 2 * sweep_ms);
  return recent.some(({ at_ms, by_ms }, first) => {
    let sum_ms = by_ms;
    return recent.slice(first + 1).some((step) => {
      sum_ms += step.by_ms;
      const isSoon = step.at_ms >= since_ms && step.at_ms - at_ms <= 2 * sweep_ms;
      return isSoon && Math.abs(sum_ms) <= leaseMargin_ms(lease_ms);
    });
  });
}

/** Whether a request's hold may exceed a lowered limit by now, so that a part of it is not charged. */
function mayBeShort({ office, scenario, store, budgets }: World, { organization: { id } }: Account): boolean {
  const [now, { began }] = [store.ownLimits(id), budgets.get(id)!];
  const isBudgetChanged = now.limits !== began.limits || now.raises !== began.raises;
  return isBudgetChanged || office.versions(id).length > 1 || scenario.faults.some(({ kind }) => kind === "adjust");
}

/** Judges the record of a request that its own node settled. */
export function judgeCharge(world: World, account: Account, record: ModelRecord, say: Say): void {
  const { plan, refused } = account;
  const { usage, charged, uncharged } = record;
  if (refused) {
    if (charged !== 0) say("refusal", `${plan.id} was refused as ${refused}, and charged ${charged}`);
    return;
  }
  judgeUsage(account, record, say);
  if (account.setBackAt_ms !== null) return;
  if (
    uncharged > 0 &&
    !mayBeShort(world, account) &&
    costOf(usage.inputTokens, prices.input) <= costOf(plan.inputTokensEstimate, heldInputPrice)
  )
    say("charge", `${plan.id} held enough, and ${uncharged} nanos were not charged`);
}

/** Judges a request that was recovered and then settled by its own node, by both of its records. */
export function judgeLate({ store }: World, account: Account, late: ModelRecord, say: Say): void {
  const record = store.model.records.get(account.plan.id)!;
  if (account.plan.repeats !== null) say("key", `${account.plan.id} has a key, and was charged late`);
  if (!record.recovered || !account.plan.stream)
    say("late", `${account.plan.id} was settled late, and never recovered`);
  judgeUsage(account, bothOf(record, late), (_, sentence) => say("late", sentence));
}

/**
 * Judges a recovered request at the end of the history: its node must have reported its forwarded usage, and been
 * answered.
 */
export function judgeBooked({ store, scenario }: World, account: Account, record: ModelRecord, say: Say): void {
  const { plan, ending, settlementKnown, setBackAt_ms } = account;
  if (
    !plan.stream ||
    plan.repeats !== null ||
    !settlementKnown ||
    setBackAt_ms !== null ||
    !ending ||
    scenario.recovery === "hold"
  )
    return;
  const late = store.model.records.get(lateIdOf(plan.id));
  const booked = record.charged + record.uncharged + (late ? late.charged + late.uncharged : 0);
  const owed = priceOf(ending.usage, prices);
  if (booked < owed) say("late", `${plan.id} cost ${owed} nanos, and ${booked} are in the book`);
}

function bothOf(record: ModelRecord, late: ModelRecord): ModelRecord {
  const usage = sumOf(record.usage, late.usage);
  const charged = record.charged + late.charged;
  return { ...record, usage, charged, uncharged: record.uncharged + late.uncharged };
}

/** Judges whether a record has the forwarded tokens, and their price. */
function judgeUsage(account: Account, { usage, charged, uncharged }: ModelRecord, say: Say): void {
  const { plan, delivered, ending, reported, engineAsked } = account;
  if (!ending) say("charge", `${plan.id} was settled before it ended`);
  const isVoid = !plan.stream && (ending?.outcome === "failed" || (ending?.outcome === "cancelled" && account.isLost));
  if (isVoid && charged + uncharged !== 0)
    say("delivered", `${plan.id} delivered nothing, and ${charged} and ${uncharged} nanos are what it cost`);
  const outputTokens = isVoid ? 0 : ending?.outcome === "cancelled" ? account.passed : delivered;
  if (usage.outputTokens !== outputTokens)
    say("charge", `${plan.id} had ${outputTokens} tokens and is charged for ${usage.outputTokens}`);
  const nothing = isVoid || !engineAsked || (ending?.outcome === "failed" && delivered === 0);
  const inputTokens = nothing ? 0 : reported ? plan.inputTokens : plan.inputTokensEstimate;
  if (usage.inputTokens !== inputTokens)
    say("charge", `${plan.id} had ${inputTokens} input tokens and is charged for ${usage.inputTokens}`);
  const searches = isVoid || !engineAsked ? 0 : searchNanosOf(plan);
  if (charged + uncharged !== priceOf(usage, prices) + searches)
    say("charge", `${plan.id} is charged ${charged} and not charged ${uncharged}, which is not its price`);
}

/** The delay that a node's timers may have, because its clock may be slow. */
const late_ms = 300;

/**
 * Judges how soon a request has ended after its client disconnected. Tokens that its engine has sent already may wait
 * for a growth of the hold.
 */
export function judgeDeparture(world: World, { plan, node, leftAt_ms }: Account, say: Say): void {
  const { now_ms } = world.time;
  if (leftAt_ms === null || world.scenario.weather.slow > 0 || isHindered(world, node, leftAt_ms - retry_ms)) return;
  const most_ms = plan.engine === "whole" ? finish_ms : 1_000;
  if (now_ms - leftAt_ms > most_ms + late_ms + 3 * world.scenario.flush_ms_max)
    say("departure", `${plan.id} ended ${now_ms - leftAt_ms} ms after its client had left`);
}

/** Judges the record of a request that another node settled. */
export function judgeRecovery(world: World, account: Account, record: ModelRecord, say: Say): void {
  const { plan, node, refused, delivered, deliveredAt_ms, checkpointKnown, checkpoints } = account;
  const { outputTokens } = record.usage;
  const { now_ms } = world.time;
  if (refused) {
    // A late copy of the refused admission was carried out, so a hold was granted, and the recovery settles it.
    if (record.charged !== 0 && world.scenario.recovery === "checkpoint")
      say("refusal", `${plan.id} was refused as ${refused}, and charged ${record.charged}`);
    return;
  }
  /** Whether the request's own node could not settle. */
  const gone =
    account.setBackAt_ms !== null || node.clock.crashed || reaches(node.troubles, now_ms - lease_ms - retry_ms, now_ms);
  if (!gone && !wasSetUnseen(world, account.askedAt_ms))
    say("abandoned", `${plan.id} was recovered while its node ran, and nothing stood in its way`);
  if (!plan.stream) {
    const nanos = record.charged + record.uncharged;
    if (outputTokens + nanos > 0) say("delivered", `${plan.id} was recovered, and ${nanos} nanos are what it cost`);
    return;
  }
  if (outputTokens > delivered)
    say("checkpoint", `${plan.id} forwarded ${delivered} tokens and is charged for ${outputTokens}`);
  if (outputTokens < checkpointKnown)
    say("checkpoint", `${plan.id} is charged for ${outputTokens} tokens, after a checkpoint at ${checkpointKnown}`);
  const cost = record.charged + record.uncharged;
  // A recovered answer costs nothing while a repeat with its key can run again.
  if (plan.repeats !== null && cost === 0) return;
  const nanos = world.scenario.recovery === "hold" ? account.heldNanos : priceOf(record.usage, prices);
  if (cost !== nanos)
    say(
      "checkpoint",
      `${plan.id} is charged ${record.charged} and not charged ${record.uncharged}, in all not ${nanos}`,
    );
  if (outputTokens === delivered) return;
  const since_ms =
    checkpoints.findLast(({ tokens }) => tokens === outputTokens)?.sentAt_ms ?? account.admittedAt_ms ?? now_ms;
  const over_ms = deliveredAt_ms - since_ms;
  const excused =
    account.setBackAt_ms !== null ||
    reaches(node.troubles, since_ms, deliveredAt_ms) ||
    (gone && reaches(world.storeTroubles, since_ms - retry_ms, deliveredAt_ms));
  if (over_ms > checkpoint_ms + world.scenario.flush_ms_max + slack_ms && !excused)
    say("checkpoint", `${plan.id} forwarded ${delivered - outputTokens} tokens uncharged, over ${over_ms} ms`);
}

/**
 * Judges the rate of an admitted request. Within the minute up to the request, the store of the rates may have counted
 * as many requests as the plan allows, and as many again each time that the store forgot them. If the request's node
 * counted the request by itself, the node may have counted no more than its own share.
 */
export function judgeRate(accounts: Iterable<Account>, account: Account, flushes: number, say: Say): void {
  const { plan, node, organization, ratesTakenAt_ms, ratesSharedAmong } = account;
  const { requestsPerMinute } = organization.plan;
  if (requestsPerMinute === null) return;
  if (ratesTakenAt_ms === null) {
    say("rates", `${plan.id} was admitted uncounted`);
    return;
  }
  const isOwn = ratesSharedAmong !== null;
  // A node's minute is measured by its own clock, in whole milliseconds.
  const since_ms = ratesTakenAt_ms - (isOwn ? (minute_ms - 1) / node.plan.rate : minute_ms);
  const counted = [...accounts].filter((one) => {
    if (one.organization !== organization || one.ratesTakenAt_ms === null || one.admittedAt_ms === null) return false;
    if (isOwn ? one.ratesSharedAmong === null || one.node !== node : one.ratesSharedAmong !== null) return false;
    return one.ratesTakenAt_ms <= ratesTakenAt_ms && one.ratesTakenAt_ms > since_ms;
  }).length;
  const most = isOwn ? Math.ceil(requestsPerMinute / ratesSharedAmong) : requestsPerMinute * (1 + flushes);
  if (counted > most)
    say(
      "rates",
      `${counted} requests within a minute${isOwn ? ` on node ${node.name}` : ""}, and the limit is ${most}`,
    );
}

/** The time within which a refused request gives back the rates that it had taken. */
const givenBack_ms = 1_000;

/** Judges a request that was refused because of its rate, in the absence of faults. */
export function judgeRateRefusal(world: World, accounts: Iterable<Account>, account: Account, say: Say): void {
  const { plan, organization } = account;
  const { requestsPerMinute, tokensPerMinute } = organization.plan;
  if (tokensPerMinute !== null || world.rateTroubles.length + world.storeTroubles.length > 0) return;
  const asked_ms = account.ratesAskedAt_ms ?? world.time.now_ms;
  let counted = 0;
  for (const { organization: theirs, ratesTakenAt_ms: at_ms, refused, refusedAt_ms } of accounts) {
    if (theirs !== organization || at_ms === null || at_ms <= asked_ms - minute_ms) continue;
    if (!refused || asked_ms - refusedAt_ms < givenBack_ms) counted += 1;
  }
  if (counted < (requestsPerMinute ?? Infinity))
    say("rates", `${plan.id} was refused for its rate, and ${counted} of ${requestsPerMinute} were counted`);
}
