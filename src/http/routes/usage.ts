/** GET /v1/service/usage: the three windows of the calling organization, as admission sees them. */
import { percentOf } from "../../admission/windows.ts";
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import type { WindowReading } from "../../store/ledger.ts";
import { noLimits } from "../../store/plan.ts";
import { admitted } from "../admitted.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";

export function usageRoute(house: House): Route {
  return {
    path: "/v1/service/usage",
    methods: {
      async GET(call) {
        const principal = await admitted(house, call, "usage:read");
        const { organization } = principal;
        const plan = (organization.plan !== null && house.catalog().plans.get(organization.plan)) || noLimits;
        const windows = await house.ledger.windows(organization.id, plan);
        return json(200, {
          object: "service.usage",
          session: shown(windows.session),
          week: shown(windows.week),
          month: shown(windows.month),
        });
      },
    },
    faultBody: encodeFault,
  };
}

function shown({ used, limit, resetAt }: WindowReading) {
  return { usage_percent: percentOf(used, limit), reset_at: resetAt.toISOString() };
}
