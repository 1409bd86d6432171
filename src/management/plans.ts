/** What an administrator reads of plans: those in force. */
import type { Plan } from "../store/plan.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

export interface PlanVerbs {
  listPlans(): Promise<Plan[]>;
  findPlan(input: { name: string }): Promise<Plan>;
}

export function planVerbs({ catalog }: ManagementContext): PlanVerbs {
  return {
    listPlans: async () => [...(await catalog()).plans.values()],
    async findPlan(input) {
      const { plans } = await catalog();
      const name = parse.text(input.name, "a plan's name");
      const known = [...plans.keys()].join(", ");
      return (
        plans.get(name) ?? fail(`There is no plan '${parse.excerpt(name)}'. The catalog has: ${known}.`, "not_found")
      );
    },
  };
}
