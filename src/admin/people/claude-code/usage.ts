/**
 * GET /api/oauth/usage: the limit that responses to Claude Code also have in their headers, here in money, for the
 * usage page within Claude Code.
 */
import { planOf } from "../../../core/admission/allowance.ts";
import { json } from "../../../core/http/json.ts";
import { type Currency, nanos_per_one } from "../../../core/inference/money.ts";
import { authorize } from "../../../core/operations/serve-operation.ts";
import { unlisted } from "../../../core/operations/unlisted.ts";
import { noLimits } from "../../../core/store/plan.ts";
import { type Cap, capsOf, fullest, periods, shareOf } from "../../../features/claude-code/caps.ts";

export const oauthUsage = unlisted({
  id: "getOauthUsage",
  method: "get",
  path: "/api/oauth/usage",
  faultShape: "messages",
  async handle(dependencies, call) {
    const { key, organization } = await authorize(dependencies, call, "usage:read");
    const plan = planOf(dependencies.catalog().plans, organization) ?? noLimits;
    const [windows, subjects] = await Promise.all([
      dependencies.ledger.windows(organization.id, plan),
      dependencies.ledger.budgets(organization.id, key.id),
    ]);
    const caps = capsOf(windows, subjects);
    return json(200, usageBody(caps, dependencies.currency, windows.month.used), { "cache-control": "no-store" });
  },
});

function usageBody(caps: readonly Cap[], currency: Currency, month_used: number) {
  const active = fullest(caps);
  if (!active) {
    const none = { monthly_limit: null, utilization: null };
    return { extra_usage: { is_enabled: true, ...none, used_credits: cents(month_used), currency }, limits: [] };
  }
  return {
    extra_usage: {
      is_enabled: true,
      monthly_limit: cents(active.limit),
      used_credits: cents(active.used),
      utilization: percent(active),
      currency,
    },
    limits: caps.map((cap) => ({
      kind: "spend",
      group: periods[cap.kind] ?? "session",
      percent: percent(cap),
      resets_at: new Date(cap.resetsAt_s * 1000).toISOString(),
      severity: shareOf(cap) >= 0.75 ? "warning" : "normal",
      is_active: cap === active,
    })),
  };
}

const percent = (cap: Cap) => Math.floor(shareOf(cap) * 100);

/** Nanos as whole hundredths of the currency, and never below 0. */
const cents = (nanos: number) => Math.round((Math.max(0, nanos) / nanos_per_one) * 100);
