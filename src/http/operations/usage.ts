/** GET /v1/service/usage: the three windows of the calling organization, as admission sees them. */
import { planOf } from "../../admission/allowance.ts";
import { percentOf } from "../../admission/amounts.ts";
import type { WindowReading } from "../../store/ledger.ts";
import { noLimits } from "../../store/plan.ts";
import { json } from "../json.ts";
import { credentialFaults } from "../openapi/faults.ts";
import { operation } from "../operation.ts";
import { UsageRecord } from "../shapes.ts";
import { jsonType } from "./examples.ts";

export const getUsage = operation({
  operationId: "getUsage",
  method: "get",
  path: "/v1/service/usage",
  tag: "Usage",
  summary: "Read the usage windows",
  description:
    "The five-hour session, the week and the billing month of your organization. If no session is open, it shows 0 percent and a reset in five hours.",
  scope: "usage:read",
  success: {
    description: "The three windows.",
    headers: [],
    content: {
      [jsonType]: {
        schema: UsageRecord,
        example: {
          object: "service.usage",
          session: { usage_percent: 12.5, reset_at: "2026-11-21T08:00:00.000Z" },
          week: { usage_percent: 3.07, reset_at: "2026-11-26T09:30:00.000Z" },
          month: { usage_percent: 1, reset_at: "2026-12-19T09:30:00.000Z" },
        },
      },
    },
  },
  faults: [...credentialFaults],
  otherFaults: true,
  examples: [
    {
      name: "usage",
      summary: "The windows of this key's organization",
      needs: [],
      request: () => ({ path: "/v1/service/usage" }),
      status: 200,
      contentType: jsonType,
    },
  ],
  async handle(dependencies, _call, { principal: { organization } }) {
    const plan = planOf(dependencies.catalog().plans, organization) ?? noLimits;
    const windows = await dependencies.ledger.windows(organization.id, plan);
    return json(200, {
      object: "service.usage",
      session: windowBody(windows.session),
      week: windowBody(windows.week),
      month: windowBody(windows.month),
    });
  },
});

function windowBody({ used, limit, resetAt }: WindowReading) {
  return { usage_percent: percentOf(used, limit), reset_at: resetAt.toISOString() };
}
