/** A PLAN as administrators see it, and what they do with the plans that are made at run time. */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Stale } from "../../core/store/change.ts";
import type { Repeat, Repeated } from "../../core/store/page.ts";
import type { Plan as PlanInForce, PlanLimits, PlanUse } from "../../core/store/plan.ts";
import { instant, limit, version } from "./shapes.ts";

/** The fields of a plan that answers show as they are stored. Money is not among them: it is stored in nanos. */
export const planFields = {
  name: Type.String({ examples: ["pro"] }),
  source: oneOf(["file", "management"], {
    description: "`file`: sluice.yaml or the defaults, where alone it can be changed. `management`: made here.",
  }),
  version: version(),
  changed_at: nullable(instant("From when on these limits count. Null: not in force yet.")),
  requests_per_minute: limit(),
  tokens_per_minute: limit(),
  concurrent_requests: limit(),
};
const Stored = Type.Object({ ...planFields, session: limit(), week: limit(), month: limit() });
export type Plan = Value<typeof Stored>;

/**
 * Plans that are created at run time (docs/design/usage.md, Plans that change). Each act is one entry of the audit log.
 */
export interface PlanAdministration {
  /** All plans in force, in the order of their names. */
  listPlans(): Promise<Plan[]>;
  createPlan(plan: PlanInForce, actor: string, repeat?: Repeat | undefined): Promise<Plan | KnownName | Repeated>;
  /** Changes the given limits of a plan. With a `version`, the plan must still have it. */
  updatePlan(
    name: string,
    changes: Partial<PlanLimits>,
    actor: string,
    version?: number | null,
  ): Promise<Plan | Stale<Plan> | "of_file" | null>;
  removePlan(
    name: string,
    actor: string,
    version?: number | null,
  ): Promise<Plan | Stale<Plan> | "of_file" | PlanUse | null>;
}

/** The refusal of a new plan: a plan of this source has the name already. */
export interface KnownName {
  standsIn: Plan["source"];
}
