/** GET /v1/service/usage: the three windows of the organization, with the values that admission uses. */
import { planOf } from "../admission/allowance.ts";
import { json } from "../http/json.ts";
import { percentOf } from "../inference/money.ts";
import type { LimitedBy } from "../store/budget.ts";
import { type SubjectReading, type WindowReading, windowKinds } from "../store/ledger.ts";
import { noLimits } from "../store/plan.ts";
import type { RateReading, RateReadings } from "../store/rates.ts";
import { getExample } from "./examples.ts";
import { jsonSuccess, operation } from "./operation.ts";
import { type BudgetWindows, type OwnWindows, UsageRecord } from "./shapes.ts";

export const getUsage = operation({
  operationId: "getUsage",
  method: "get",
  path: "/v1/service/usage",
  tag: "Usage",
  summary: "Read the usage windows",
  description:
    "The five-hour session, the week and the billing month of your organization. If no session is open, it shows 0 percent and a reset in five hours. If your key, you as its owner, or its team has limits beside the organization's, `key`, `person` and `team` show them. `models` has limits for some models.",
  scope: "usage:read",
  success: jsonSuccess("The three windows.", {
    schema: UsageRecord,
    example: {
      object: "service.usage",
      session: { usage_percent: 12.5, reset_at: "2026-11-21T08:00:00.000Z" },
      week: { usage_percent: 3.07, reset_at: "2026-11-26T09:30:00.000Z" },
      month: { usage_percent: 1, reset_at: "2026-12-19T09:30:00.000Z" },
    },
  }),
  faults: [],
  otherFaults: true,
  examples: [getExample("usage", "The windows of this key's organization", "/v1/service/usage")],
  async handle({ catalog, ledger, rates }, _call, { principal: { key, organization, rates: own } }) {
    const plan = planOf(catalog().plans, organization) ?? noLimits;
    const [windows, budgets, readings] = await Promise.all([
      ledger.windows(organization.id, plan),
      ledger.budgets(organization.id, key.id),
      own.length === 0 ? [] : rates.read(organization.id, own),
    ]);
    const minutes = own.map((subject, place) => ({ ...subject, body: minutesBody(readings[place]!, new Date()) }));
    const limited = (whose: LimitedBy, models?: string): OwnWindows => ({
      ...windowsBody(budgets.find((one) => one.subject === whose && one.models === models)),
      ...minutes.find((one) => one.limitedBy === whose && one.models === models)?.body,
    });
    const forModels = (whose: LimitedBy) => {
      const all = [
        ...budgets.filter((one) => one.subject === whose),
        ...minutes.filter((one) => one.limitedBy === whose),
      ];
      const patterns = new Set(all.flatMap(({ models = [] }) => models));
      return unlessEmpty("models", Object.fromEntries([...patterns].map((one) => [one, limited(whose, one)])));
    };
    const budgetOf = (whose: LimitedBy): BudgetWindows => ({ ...limited(whose), ...forModels(whose) });
    return json(200, {
      object: "service.usage",
      session: windowBody(windows.session),
      week: windowBody(windows.week),
      month: windowBody(windows.month),
      ...forModels("organization"),
      ...unlessEmpty("key", budgetOf("key")),
      ...unlessEmpty("person", budgetOf("person")),
      ...unlessEmpty("team", budgetOf("team")),
    });
  },
});

const unlessEmpty = <Body extends object>(name: string, body: Body): Record<string, Body> =>
  Object.keys(body).length > 0 ? { [name]: body } : {};

/**
 * The windows of a key or team that have a limit. Windows without a limit show nothing that the organization's windows
 * don't.
 */
function windowsBody(budget: SubjectReading | undefined): OwnWindows {
  if (!budget) return {};
  const limited = windowKinds.filter((kind) => budget.windows[kind].limit !== null);
  return Object.fromEntries(limited.map((kind) => [kind, windowBody(budget.windows[kind])]));
}

function minutesBody({ requests, tokens }: RateReadings, now: Date): OwnWindows {
  const body = ({ limit, remaining, reset_ms }: RateReading) =>
    windowBody({ limit, used: limit - remaining, resetAt: new Date(now.getTime() + reset_ms) });
  return {
    ...(requests ? { requests_per_minute: body(requests) } : {}),
    ...(tokens ? { tokens_per_minute: body(tokens) } : {}),
  };
}

function windowBody({ used, limit, resetAt }: Pick<WindowReading, "used" | "limit" | "resetAt">) {
  return { usage_percent: percentOf(used, limit), reset_at: resetAt.toISOString() };
}
