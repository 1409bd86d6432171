/** GET /v1/service/usage: the three windows of the calling organization, as admission sees them. */
import { planOf } from "../../admission/allowance.ts";
import { percentOf } from "../../admission/amounts.ts";
import { type SubjectReading, type WindowReading, windowKinds } from "../../store/ledger.ts";
import { noLimits } from "../../store/plan.ts";
import { json } from "../json.ts";
import { credentialFaults } from "../openapi/faults.ts";
import { operation } from "../operation.ts";
import { type BudgetWindows, UsageRecord } from "../shapes.ts";
import { jsonType } from "./examples.ts";

export const getUsage = operation({
  operationId: "getUsage",
  method: "get",
  path: "/v1/service/usage",
  tag: "Usage",
  summary: "Read the usage windows",
  description:
    "The five-hour session, the week and the billing month of your organization. If no session is open, it shows 0 percent and a reset in five hours. If your key or its team has limits of its own, `key` and `team` show their windows.",
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
  async handle(dependencies, _call, { principal: { key, organization } }) {
    const plan = planOf(dependencies.catalog().plans, organization) ?? noLimits;
    const [windows, budgets] = await Promise.all([
      dependencies.ledger.windows(organization.id, plan),
      dependencies.ledger.budgets(organization.id, key.id),
    ]);
    return json(200, {
      object: "service.usage",
      session: windowBody(windows.session),
      week: windowBody(windows.week),
      month: windowBody(windows.month),
      ...Object.fromEntries(budgets.map(budgetBody).filter(([, limited]) => Object.keys(limited).length > 0)),
    });
  },
});

/** The windows that are limited: the others say nothing that the organization's do not. */
function budgetBody({ subject, windows }: SubjectReading): [SubjectReading["subject"], BudgetWindows] {
  const limited = windowKinds.filter((kind) => windows[kind].limit !== null);
  return [subject, Object.fromEntries(limited.map((kind) => [kind, windowBody(windows[kind])]))];
}

function windowBody({ used, limit, resetAt }: WindowReading) {
  return { usage_percent: percentOf(used, limit), reset_at: resetAt.toISOString() };
}
