// Holds the decisions of an administrator, and each node's knowledge of them: the unchanged product code that follows
// limits (src/core/admission/limits-in-force.ts) and revocations (src/core/auth/standing.ts), over wires that may fail.

import {
  type LimitChanges,
  type LimitsInForce,
  limitsInForce,
  noLimitChanges,
} from "../../src/core/admission/limits-in-force.ts";
import { type Standings, standings } from "../../src/core/auth/standing.ts";
import type { Principal, Verdict } from "../../src/core/auth/verdict.ts";
import type { ChangedLimits, Plan } from "../../src/core/store/plan.ts";
import { knownAs } from "./budgets.ts";
import type { Node } from "./node.ts";
import { endedSince, nextEndIn_ms } from "./raises.ts";
import type { OrganizationPlan } from "./scenario.ts";
import type { Store } from "./store.ts";
import type { World } from "./world.ts";

/** A version of a plan, and the time from which it is in force. */
interface Version {
  from_ms: number;
  plan: Plan;
}

export class Office {
  readonly #versions = new Map<string, Version[]>();
  /** The changes of limits and raises in the order of their numbers, each with the subjects that it changes. */
  readonly #changes: { at_ms: number; subjects: readonly string[] }[] = [];
  readonly #revokedAt_ms = new Map<string, number>();
  readonly #heardBy = new Set<(organizationId: string) => void>();

  constructor(
    readonly now_ms: () => number,
    organizations: readonly OrganizationPlan[],
    readonly store: () => Pick<Store, "ownLimits" | "now_ms">,
  ) {
    for (const { id, plan } of organizations) this.#versions.set(id, [{ from_ms: Number.NEGATIVE_INFINITY, plan }]);
  }

  plan(organizationId: string): Plan {
    return this.versions(organizationId).at(-1)!.plan;
  }

  versions(organizationId: string): readonly Version[] {
    return this.#versions.get(organizationId)!;
  }

  plans(): Plan[] {
    return [...this.#versions.values()].map((versions) => versions.at(-1)!.plan);
  }

  change(organizationId: string, plan: Plan): void {
    this.#versions.get(organizationId)!.push({ from_ms: this.now_ms(), plan });
    this.#tell(organizationId);
  }

  /** Notes that limits of keys, people and teams of this organization, or its raise, have changed. */
  limit(organizationId: string, subjects: readonly string[]): void {
    this.#changes.push({ at_ms: this.now_ms(), subjects });
    this.#tell(organizationId);
  }

  /** The time at which the limits of this subject, or its raise, were last set. */
  limitedFrom_ms(subject: string): number {
    return this.#changes.findLast(({ subjects }) => subjects.includes(subject))?.at_ms ?? Number.NEGATIVE_INFINITY;
  }

  changes(since: number | null, from: Date | null): ChangedLimits {
    const clock_ms = this.store().now_ms;
    const changed = this.#changes.slice(since ?? this.#changes.length).flatMap(({ subjects }) => subjects);
    const raises = [...this.#versions.keys()].map((id) => [id, this.store().ownLimits(id).raises] as const);
    const ended = raises.flatMap(([organizationId, ofOrganization]) =>
      endedSince(ofOrganization, from?.getTime() ?? clock_ms, clock_ms).map((id) => knownAs(organizationId, id)),
    );
    return {
      number: this.#changes.length,
      at: new Date(clock_ms),
      nextEnd_ms: nextEndIn_ms(
        raises.flatMap(([, ofOrganization]) => [...(ofOrganization?.values() ?? [])]),
        clock_ms,
      ),
      subjects: [...changed, ...ended],
    };
  }

  revoke(organizationId: string): void {
    if (!this.#revokedAt_ms.has(organizationId)) this.#revokedAt_ms.set(organizationId, this.now_ms());
    this.#tell(organizationId);
  }

  revokedAt_ms(organizationId: string): number | null {
    return this.#revokedAt_ms.get(organizationId) ?? null;
  }

  listen(heard: (organizationId: string) => void): void {
    this.#heardBy.add(heard);
  }

  #tell(organizationId: string): void {
    for (const heard of this.#heardBy) heard(organizationId);
  }
}

/** A node's knowledge of an administrator's decisions. */
export interface Knowledge {
  /** The plan that the node has read last; before its first reading, the one in force when the node started. */
  plan(organizationId: string): Plan;
  /** The changes of limits that the node has learned of, by subject. */
  changes: LimitChanges;
  standings: Standings | null;
}

export const principalOf = ({ id, plan }: OrganizationPlan): Principal =>
  ({ key: { id: `key of ${id}` }, organization: { id, plan: plan.name }, secretHash: id }) as unknown as Principal;

/**
 * Makes a node's knowledge of an administrator's decisions. It follows only the kinds of changes that this history has.
 */
export function knowledgeOf(world: World, node: Node): Knowledge {
  const { office, scenario } = world;
  const has = (...kinds: string[]) => scenario.faults.some(({ kind }) => kinds.includes(kind));
  const began = new Map(scenario.organizations.map(({ id }) => [id, office.plan(id)]));
  let inForce: LimitsInForce | null = null;
  const follow = world.defects.followsNobody !== true;
  if (has("plan", "budget", "team", "person", "raise", "models") && follow) {
    const hears = world.defects.hearsOf ?? (() => true);
    void limitsInForce({
      store: {
        inForce: () => (inForce ? asked(world, node, "plans", () => office.plans()) : Promise.resolve(office.plans())),
        changes: async (since, from = null) => {
          const read = () => office.changes(since, world.defects.hearsOfNoEnd ? null : from);
          if (since === null) return read();
          const changed = await asked(world, node, "limits", read);
          return { ...changed, subjects: changed.subjects!.filter(hears) };
        },
        listen: async (changed) => {
          office.listen(() => heard(world, node, changed));
          return async () => {};
        },
      },
      failed: () => {},
      clock: node.clock,
    }).then((found) => {
      inForce = found;
    });
  }
  const verdictOn = (id: string): Verdict =>
    office.revokedAt_ms(id) === null
      ? { principal: principalOf(scenario.organizations.find((one) => one.id === id)!) }
      : { refusal: "revoked", ids: [`key of ${id}`, id] };
  const keys = has("revoke")
    ? standings({
        authenticator: { standing: (id) => asked(world, node, `key-${id}`, () => verdictOn(id)) },
        ends: follow,
        clock: node.clock,
      })
    : null;
  if (keys) office.listen((id) => heard(world, node, () => keys.changed(id)));
  const names = new Map(scenario.organizations.map(({ id, plan }) => [id, plan.name]));
  return {
    plan: (id) => inForce?.plans().get(names.get(id)!) ?? began.get(id)!,
    changes: {
      get edition() {
        return (inForce?.changes ?? noLimitChanges).edition;
      },
      concern: (subjects, since) => (inForce?.changes ?? noLimitChanges).concern(subjects, since),
    },
    standings: keys,
  };
}

/** Delivers a message to the node, unless it is lost. */
function heard(world: World, node: Node, hear: () => void): void {
  const fate = world.fate(node.nextMessage("heard"));
  if (fate.lost || fate.unanswered || node.cut || world.store.down) return;
  node.clock.arrive(fate.arrive_ms, hear);
}

/** Asks the directory, and resolves with the directory's answer as of the time at which it read. */
function asked<Result>(world: World, node: Node, about: string, read: () => Result): Promise<Result> {
  const { time, store } = world;
  const fate = world.fate(node.nextMessage(about));
  const answer_ms_max = 5_000;
  const trouble = { from_ms: time.now_ms, to_ms: time.now_ms };
  return new Promise((resolve, reject) => {
    const fails = (after_ms: number) => {
      trouble.to_ms += after_ms;
      node.askingTroubles.push(trouble);
      node.clock.arrive(after_ms, () => reject(new Error("the directory did not answer")));
    };
    const isLost = fate.lost || fate.unanswered || node.cut || store.down || store.isStalled;
    if (isLost || fate.arrive_ms + fate.answer_ms > 50) return fails(fate.hangs ? answer_ms_max : 2);
    time.in(fate.arrive_ms, () => {
      const result = read();
      node.clock.arrive(fate.answer_ms, () => resolve(result));
    });
  });
}
