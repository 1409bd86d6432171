/**
 * POST /api/limit-requests: a person asks for a higher limit, authenticated by a key or a sign-in's token instead of a
 * session of the console. Such a credential may call no other verb of management. The limit request itself grants
 * nothing: an administrator decides.
 */

import { planOf } from "../../core/admission/allowance.ts";
import { readJson } from "../../core/body/read.ts";
import { json } from "../../core/http/json.ts";
import { authorize } from "../../core/operations/serve-operation.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import { ratesOverPlan } from "../../core/store/rates.ts";
import type { ManagementEntrance } from "../http/gate.ts";
import { fail } from "../management/error.ts";
import { perform, type Verb } from "../management/verb.ts";
import { verbNamed } from "../management/verbs.ts";

export const limitRequestsPath = "/api/limit-requests";

const body_bytes_max = 16 * 1024;

export function askForMore(contextFor: ManagementEntrance["contextFor"]) {
  return unlisted({
    id: "requestLimit",
    method: "post",
    path: limitRequestsPath,
    async handle(dependencies, call) {
      const { key, organization, person, overPlan } = await authorize(dependencies, call, "any");
      const plan = planOf(dependencies.catalog().plans, organization);
      dependencies.arrivals.take(key.id, "count", plan ? ratesOverPlan(plan, overPlan) : undefined);
      const body = await readJson(call.request, { ...dependencies.limits, body_bytes_max }, () => {});
      call.bodyRead();
      if (!person) return fail("This key belongs to nobody. People ask for more, with their own keys.", "wrong_state");
      const caller = {
        role: "member",
        name: person.id,
        actor: `person:${person.id}`,
        within: organization.id,
        person: person.id,
        noted: { person: person.id },
      } as const;
      const context = contextFor({ caller, address: call.client, repeatKey: null });
      return json(200, await perform(verbNamed("requestLimit") as unknown as Verb, context, body.value));
    },
  });
}
