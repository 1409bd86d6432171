/** What an administrator does with plans: reads those in force, and makes and changes those that are not in the file. */
import type { AuditEntry } from "../store/directory.ts";
import { units_max } from "../store/ledger.ts";
import { type KnownPlan, noLimits, type Plan, type PlanLimits, type StalePlan } from "../store/plan.ts";
import { limitNames } from "./budget-limits.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { limitOf, numberIn, type Paged, type PageInput } from "./page.ts";
import * as parse from "./parse.ts";
import { stale, type Versioned, versionIn } from "./version.ts";

/** In micro-units a window, or as the name says. Null: no limit. */
export type PlanLimitChanges = Partial<PlanLimits>;

export interface PlanVerbs {
  /** All that are in force. */
  listPlans(): Promise<KnownPlan[]>;
  findPlan(input: { name: string }): Promise<KnownPlan>;
  /** What is left out is not limited. */
  createPlan(input: { name: string } & PlanLimitChanges): Promise<KnownPlan>;
  /** What is left out stays. It counts at once on every node, for running requests too. */
  updatePlan(input: { name: string } & PlanLimitChanges & Versioned): Promise<KnownPlan>;
  /** Refused while an organization is on it. */
  removePlan(input: { name: string } & Versioned): Promise<KnownPlan>;
  /** What was in force when, newest first: the audit log's entries about a plan, also of one that was removed. */
  planHistory(input: { name: string } & PageInput): Promise<Paged<AuditEntry>>;
}

export function planVerbs(context: ManagementContext): PlanVerbs {
  const { actor, administration, catalog, plans } = context;

  async function known(): Promise<Map<string, KnownPlan>> {
    const ofCatalog = [...(await catalog()).plans.values()].map(
      (plan): KnownPlan => ({ ...plan, source: "file", version: 1, changedAt: null }),
    );
    return new Map([...ofCatalog, ...(await plans.listPlans())].map((plan) => [plan.name, plan]));
  }
  async function noPlan(name: string): Promise<never> {
    const names = [...(await known()).keys()].join(", ");
    return fail(`There is no plan '${parse.excerpt(name)}'. The catalog has: ${names}.`, "not_found");
  }
  async function found(name: string): Promise<KnownPlan> {
    return (await known()).get(name) ?? noPlan(name);
  }

  return {
    listPlans: async () => [...(await known()).values()],
    findPlan: async (input) => found(parse.text(input.name, "a plan's name")),
    async createPlan(input) {
      const name = planName(input.name);
      const plan: Plan = { ...noLimits, ...limitsIn(input), name };
      const there = (await known()).get(name);
      const made = there
        ? { standsIn: there.source }
        : await plans.createPlan(plan, actor, context.repeatOf("createPlan", input));
      if (made === "reused") return reusedKey();
      if ("standsIn" in made) return standing(name, made.standsIn);
      return "repeated" in made ? found(made.repeated) : made;
    },
    async updatePlan(input) {
      const name = parse.text(input.name, "a plan's name");
      const changes = limitsIn(input);
      const updated = await plans.updatePlan(name, changes, actor, versionIn(input));
      if (updated === null) return notThere(name);
      if (updated === "of_file") return inFile(name);
      return "stalePlan" in updated ? stalePlan(updated, input.version!) : updated;
    },
    async removePlan(input) {
      const name = parse.text(input.name, "a plan's name");
      const removed = await plans.removePlan(name, actor, versionIn(input));
      if (removed === null) return notThere(name);
      if (removed === "of_file") return inFile(name);
      if ("stalePlan" in removed) return stalePlan(removed, input.version!);
      if (!("organizations" in removed)) return removed;
      const { organizations, slugs } = removed;
      const named = slugs.length < organizations ? [...slugs, "…"] : slugs;
      return fail(
        `Plan '${name}' is used by ${organizations} organization${organizations === 1 ? "" : "s"}: ${named.join(", ")}. To move them, run: sluice org plan ORG PLAN`,
        "state",
      );
    },
    async planHistory(input) {
      const name = parse.text(input.name, "a plan's name");
      const limit = limitOf(input);
      const before = numberIn(input);
      const entries = await administration.listAudit({ plan: name, before, limit: limit + 1 });
      if (entries.length === 0 && before === undefined) await found(name);
      const items = entries.slice(0, limit);
      return { items, next: entries.length > limit ? String(items.at(-1)!.number) : null };
    },
  };

  /** One of a file that no node has published is not in the store. */
  async function notThere(name: string): Promise<never> {
    return (await known()).has(name) ? inFile(name) : noPlan(name);
  }
}

function limitsIn(input: PlanLimitChanges): PlanLimitChanges {
  const given: PlanLimitChanges = {};
  for (const [written, limit] of Object.entries(limitNames)) {
    const value = input[limit];
    if (value === undefined) continue;
    given[limit] = value === null ? null : parse.count(value, units_max, `The limit '${written}'`);
  }
  return given;
}

/** As sluice.yaml takes it and the metrics' labels bear it. */
function planName(value: unknown): string {
  const word = parse.text(value, "a plan's name");
  if (/^[a-z0-9](?:[a-z0-9._-]{0,62})$/i.test(word)) return word;
  return fail(
    `'${parse.excerpt(word)}' is not a name for a plan. Use 1 to 63 letters, digits, and the characters . _ -, and begin with a letter or digit.`,
  );
}

function standing(name: string, source: KnownPlan["source"]): never {
  const next = source === "file" ? "in sluice.yaml or among the defaults" : "already; to change it, update it";
  return fail(`There is a plan '${name}' ${next}. A name stands in one place only.`, "taken");
}

function inFile(name: string): never {
  return fail(`Plan '${name}' stands in sluice.yaml or among the defaults. Change it there, and reload.`, "state");
}

function stalePlan({ stalePlan: current }: StalePlan, version: number): never {
  return stale(`Plan '${current.name}'`, { now: current.version, read: version, current });
}
