// Judges the effects of an administrator's decisions on the running requests of a history (a simulated run): limits
// that are lowered, keys that are revoked.

import type { Command, UsageLimits } from "../../src/core/store/ledger.ts";
import type { Plan } from "../../src/core/store/plan.ts";
import { underRaise } from "../core/store/budget-model.ts";
import { limitIn } from "../core/store/windows-model.ts";
import type { Account, Grant } from "./account.ts";
import { knownAs } from "./budgets.ts";
import type { Node } from "./node.ts";
import { prices } from "./prices.ts";
import type { Say } from "./rules.ts";
import { lease_ms } from "./scenario.ts";
import { isHindered } from "./verdict.ts";
import { reaches, type World } from "./world.ts";

/**
 * How long a node may apply an old limit when the message of a change was lost, in milliseconds: it reads the limits
 * every second, and its clock may be slow.
 */
const known_ms = 1_200;
/**
 * How much longer an admission may apply an old limit: it takes the plan that was in force when its request came, and
 * then waits for rates and its grant.
 */
const admitted_ms = 6_000;
/**
 * How long a request may go on after its key was revoked, in milliseconds. Nodes ask for revoked keys once a second, by
 * a clock that may be slow.
 */
const ended_ms = 1_100;

function isKept(node: Node, world: World, since_ms: number): boolean {
  return isHindered(world, node, since_ms) || reaches(node.askingTroubles, since_ms, world.time.now_ms);
}

/** Checks that a command applies a plan in force, or one of which its node could not yet know that it was replaced. */
export function judgeLimits(world: World, account: Account, command: Command, say: Say): void {
  if (!("limits" in command)) return;
  const name = `${command.verb} ${"nanosTotal" in command ? command.nanosTotal : ""}`;
  if (account.sent.has(name)) return;
  account.sent.add(name);
  const versions = world.office.versions(command.organizationId);
  const index = versions.findLastIndex(({ plan }) => isOf(plan, command.limits));
  if (index < 0) say("plans", `${command.requestId} goes by limits that no plan ever had`);
  const until_ms = versions[index + 1]?.from_ms;
  if (until_ms === undefined) return;
  const gaveUp = command.verb === "settle" && command.errorCode === "storage_unavailable";
  const late_ms = world.time.now_ms - until_ms;
  const most_ms = known_ms + (command.verb === "admit" || gaveUp ? admitted_ms : 0);
  if (late_ms > most_ms && !isKept(account.node, world, until_ms - 100))
    say("plans", `${command.requestId} sends a ${command.verb} by a plan that counts no more since ${late_ms} ms`);
}

function isOf(plan: Plan, limits: UsageLimits): boolean {
  const { session, week, month, concurrentRequests } = plan;
  return (
    session === limits.session &&
    week === limits.week &&
    month === limits.month &&
    concurrentRequests === limits.concurrentRequests
  );
}

/** Judges whether the answer may still be forwarded at this moment, in which it is forwarded up to this many tokens. */
export function judgeStanding(world: World, account: Account, tokens: number, say: Say): void {
  const { plan, organization } = account;
  const { now_ms } = world.time;
  const revokedAt_ms = world.office.revokedAt_ms(organization.id);
  if (revokedAt_ms !== null && now_ms > revokedAt_ms + ended_ms && !isKept(account.node, world, now_ms - 2 * ended_ms))
    say("standing", `${plan.id} forwarded ${tokens} tokens ${now_ms - revokedAt_ms} ms after its key was revoked`);
  judgeReview(world, account, tokens, say);
}

/** Checks that nanos held beyond a lowered limit have been given back before more of the answer is forwarded. */
function judgeReview(world: World, account: Account, tokens: number, say: Say): void {
  const { plan, grant } = account;
  const { now_ms } = world.time;
  if (!grant || account.setBackAt_ms !== null || tokens * prices.output === 0) return;
  // In two cases the held nanos may exceed the limit: a late copy of a growth holds once more what was given back, and
  // an operator's entry counts only at the next growth. Such histories are not judged.
  const { doubled, slow } = world.scenario.weather;
  if (doubled > 0 || slow > 0 || world.scenario.faults.some(({ kind }) => kind === "adjust")) return;
  for (const { name, since_ms, taken, limit, knownBy } of boundsOf(world, account, grant)) {
    if (limit === null || taken <= limit || now_ms < since_ms + known_ms) continue;
    if (knownBy.some((node) => node && isKept(node, world, since_ms - lease_ms))) continue;
    say("plans", `${plan.id} forwarded ${tokens} tokens, and ${name} has ${taken} of ${limit} nanos taken`);
  }
}

/** A limit on a request: one window of a subject in which the request counts. */
interface Bound {
  name: string;
  /** The time from which this limit is in force. */
  since_ms: number;
  limit: number | null;
  taken: number;
  /** The nodes that must have learned of the limit before the judge can expect that it is kept. */
  knownBy: readonly (Node | undefined)[];
}

function boundsOf(world: World, { plan, organization, node }: Account, { cells }: Grant): Bound[] {
  const hold = world.store.model.holds.get(plan.id);
  if (!hold) return [];
  const { from_ms, plan: below } = world.office.versions(organization.id).at(-1)!;
  const limits = raisedPlan(world, organization.id, below);
  const since_ms = Math.max(from_ms, limitedFrom_ms(world, organization.id, organization.id));
  const bounds = cells.map(({ kind, used, held }): Bound => {
    const whole = kind === "extra" ? null : limits[kind];
    const limit = whole === null ? null : limitIn(whole, hold.windows[kind]);
    // Any node that was cut off may still admit a request by its old plan, so all nodes must know the limit.
    return { name: `its ${kind}`, since_ms, limit, taken: used + held, knownBy: world.nodes };
  });
  for (const { subject, windows } of hold.own)
    for (const window of windows) {
      const { kind, total } = window;
      const since_ms = limitedFrom_ms(world, organization.id, subject.id);
      const taken = total.used + total.held;
      const limit = subject.limits[kind] === null ? null : window.limit();
      bounds.push({ name: `the ${kind} of ${subject.id}`, since_ms, limit, taken, knownBy: [node] });
    }
  return bounds;
}

/** The limits of an organization's plan that are in force, with the organization's raise applied. */
export function raisedPlan({ store }: World, organizationId: string, below: UsageLimits): UsageLimits {
  return underRaise(below, store.ownLimits(organizationId).raises?.get(organizationId), store.now_ms);
}

/**
 * The time from which a subject has its present limits. A raise ends by the store's clock, so setting that clock may
 * end it, too.
 */
function limitedFrom_ms({ office, store, steps }: World, organizationId: string, id: string): number {
  const set_ms = office.limitedFrom_ms(knownAs(organizationId, id));
  const raise = store.ownLimits(organizationId).raises?.get(id);
  if (!raise || raise.until_ms > store.now_ms) return set_ms;
  return Math.max(set_ms, raise.until_ms - store.isAhead_ms, steps.at(-1)?.at_ms ?? Number.NEGATIVE_INFINITY);
}
