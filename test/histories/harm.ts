// Carries out the faults of nodes and stores in a history (a simulated run) and its administrators' decisions; and
// begins the quiet phase at its end, in which nothing goes wrong.

import type { OwnLimits } from "../core/store/budget-model.ts";
import { hasCalendar } from "../core/store/windows-model.ts";
import { changedBudget, changedSubjects } from "./budgets.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import { changedPeople } from "./people.ts";
import { raised } from "./raises.ts";
import type { FaultPlan } from "./scenario.ts";
import type { World } from "./world.ts";

export function harm(world: World, judge: Judge, fault: FaultPlan, start: (index: number) => void): void {
  if (world.quiet) return;
  const { time, store } = world;
  const quietIn_ms = time.began_ms + world.scenario.quiet_ms - time.now_ms;
  const node = "node" in fault ? world.nodes[fault.node] : undefined;
  if ("node" in fault && !node?.runs) return;
  const for_ms = "for_ms" in fault ? Math.min(fault.for_ms, quietIn_ms) : 0;
  const trouble = { from_ms: time.now_ms, to_ms: time.now_ms + for_ms };
  const name = node?.name;
  switch (fault.kind) {
    case "crash":
      world.tell(() => `node ${name} crashes`);
      gone(fault.restart_ms);
      return;
    case "drain": {
      if (node!.drains) return;
      node!.drains = true;
      world.tell(() => `node ${name} drains, within ${fault.within_ms} ms`);
      void node!.admission.stop(fault.within_ms).then(() => gone(fault.restart_ms));
      return;
    }
    case "freeze":
      world.tell(() => `node ${name} freezes for ${for_ms} ms`);
      freeze(node!);
      return;
    case "cut": {
      world.tell(() => `node ${name} is cut off for ${for_ms} ms${fault.silent ? ", in silence" : ""}`);
      const cut = { silent: fault.silent };
      node!.troubles.push(trouble);
      node!.cut = cut;
      world.in(for_ms, () => {
        if (node!.cut === cut) node!.cut = null;
      });
      return;
    }
    case "away":
    case "store-crash":
      world.tell(() =>
        fault.kind === "away" ? `the store is away for ${for_ms} ms` : `the store crashes, for ${for_ms} ms`,
      );
      world.storeTroubles.push(trouble);
      store.downUntil_ms = Math.max(store.downUntil_ms, trouble.to_ms);
      if (fault.kind === "store-crash") judge.crashed(store.crash());
      return;
    case "failover":
      world.tell(() => `a replica takes the store's place after ${for_ms} ms, and lacks ${fault.lost_ms} ms`);
      world.storeTroubles.push(trouble);
      store.downUntil_ms = Math.max(store.downUntil_ms, trouble.to_ms);
      judge.wokeInThePast(store.crash(fault.lost_ms));
      return;
    case "stall":
    case "pause":
      world.tell(() => `the store ${fault.kind === "pause" ? "and all nodes stand" : "stands"} still for ${for_ms} ms`);
      world.storeTroubles.push(trouble);
      store.stalledUntil_ms = Math.max(store.stalledUntil_ms, trouble.to_ms);
      if (fault.kind === "pause") for (const one of world.nodes) if (one?.runs) freeze(one);
      return;
    case "rates-away":
      world.tell(() => `the store of the rates is away for ${for_ms} ms`);
      world.rateTroubles.push(trouble);
      world.ratesAwayUntil_ms = Math.max(world.ratesAwayUntil_ms, trouble.to_ms);
      return;
    case "rates-flush":
      world.tell(() => "the store of the rates is flushed");
      world.rates = world.freshRates();
      world.logs.flush();
      judge.ratesFlushed();
      return;
    default:
      decide(world, judge, fault);
  }

  function freeze(one: Node): void {
    one.troubles.push(trouble);
    one.clock.freeze(for_ms);
  }

  function gone(restart_ms: number | null): void {
    if (node!.clock.crashed) return;
    world.tell(() => `node ${name} is gone`);
    node!.clock.crashed = true;
    if (restart_ms !== null) world.in(restart_ms, () => start(node!.index));
    else if (world.quiet) oneAtLeast(world, start);
  }
}

/** Begins the quiet phase at the end of a history, in which nothing goes wrong. */
export function calm(world: World, start: (index: number) => void): void {
  world.tell(() => "from here on all goes well");
  world.quiet = true;
  oneAtLeast(world, start);
}

/** Starts a node if none runs, because a node must recover the holds that are left. */
function oneAtLeast({ nodes }: World, start: (index: number) => void): void {
  if (nodes.every((node) => !node || node.clock.crashed)) start(nodes.findIndex((node) => node));
}

type Decision = Extract<
  FaultPlan,
  {
    kind:
      | "plan"
      | "anchor"
      | "calendar"
      | "adjust"
      | "revoke"
      | "budget"
      | "team"
      | "models"
      | "person"
      | "raise"
      | "clock";
  }
>;

/** Carries out an administrator's decision. It is stored at once, and no failover of the store undoes it. */
function decide(world: World, judge: Judge, decision: Decision): void {
  const { store, office, scenario } = world;
  if (decision.kind === "clock") {
    world.setClock(decision.by_ms);
    return;
  }
  const { id } = scenario.organizations[decision.organization]!;
  switch (decision.kind) {
    case "plan":
      world.tell(() => `the plan of ${id} is changed: ${JSON.stringify(decision.plan)}`);
      judge.planned(id);
      office.change(id, decision.plan);
      store.setLimits(id, decision.plan);
      return;
    case "calendar":
      world.tell(() => `${id} has a new calendar: ${JSON.stringify(decision.calendar)}`);
      judge.calendared(id, decision.calendar);
      store.setCalendar(id, decision.calendar);
      return;
    case "anchor":
      // Management refuses a new anchor while the organization has a calendar.
      if (hasCalendar(store.anchors(id), store.now_ms)) return;
      world.tell(() => `${id} has a new anchor`);
      judge.anchored(id, decision.anchor_ms);
      store.setAnchor(id, decision.anchor_ms);
      return;
    case "revoke":
      world.tell(() => `the key of ${id} is revoked`);
      office.revoke(id);
      return;
    case "budget":
    case "team":
    case "models":
      world.tell(() => `a limit of ${id} is changed: ${JSON.stringify(decision)}`);
      judge.budgeted(id, decision.kind);
      limit(id, changedBudget(id, store.ownLimits(id), world.budgets.get(id)!, decision));
      return;
    case "person": {
      world.tell(() => `a person of ${id} is changed: ${JSON.stringify(decision)}`);
      judge.budgeted(id, decision.kind);
      const there = scenario.organizations[decision.toOrganization % scenario.organizations.length]!.id;
      limit(id, changedBudget(id, store.ownLimits(id), world.budgets.get(id)!, decision));
      if (decision.act === "leaves" && there !== id)
        limit(there, changedPeople(store.ownLimits(there), there, decision, "there"));
      return;
    }
    case "raise": {
      world.tell(() => `a raise of ${id} is set or ended: ${JSON.stringify(decision)}`);
      judge.budgeted(id, decision.kind);
      const before = store.ownLimits(id);
      const below = [[id, office.plan(id)] as const, ...before.limits];
      const after = raised(before, below, decision, store.now_ms);
      limit(id, after);
      world.time.in(decision.for_ms, () => judge.raiseEnded(id, after));
      return;
    }
    case "adjust": {
      const entryId = `entry_${decision.index}`;
      const adjust = () => {
        if (store.down) return;
        world.tell(() => `an operator adds ${decision.nanos} to the ${decision.window} of ${id}`);
        judge.adjusted(
          entryId,
          id,
          decision.window,
          decision.nanos,
          store.adjust(entryId, id, decision.window, decision.nanos),
        );
      };
      adjust();
      if (decision.again_ms !== null) world.in(decision.again_ms, adjust);
    }
  }

  function limit(organizationId: string, after: OwnLimits): void {
    const before = store.ownLimits(organizationId);
    store.setOwnLimits(organizationId, after);
    office.limit(organizationId, changedSubjects(organizationId, before, after));
  }
}
