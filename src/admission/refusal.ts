/** A refusal of the ledger as the fault that a client sees. The rules: decisions.md, Errors. Pure. */
import { Fault } from "../inference/fault.ts";
import { type Shortage, type UsageLimits, type WindowKind, type WindowReadings, windowKinds } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import { percentOf } from "./windows.ts";

const windowNames: Record<WindowKind, string> = {
  session: "five-hour session",
  week: "weekly",
  month: "monthly",
};

/** Percent and reset of the three windows, as headers. */
export function windowHeaders(windows: WindowReadings): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const kind of windowKinds) {
    const { used, limit, resetAt } = windows[kind];
    headers[`x-service-usage-${kind}-percent`] = String(percentOf(used, limit));
    headers[`x-service-usage-${kind}-reset-at`] = resetAt.toISOString();
  }
  return headers;
}

/** A window is full of settled use, and extra usage cannot take the request. */
export function usageLimitReached(shortage: Shortage, plan: Plan): Fault {
  const { windows, extra, at } = shortage;
  const window = windows[shortage.kinds[0] ?? "session"];
  const seconds = Math.max(1, Math.ceil((window.resetAt.getTime() - at.getTime()) / 1000));
  const resetsAt_s = Math.ceil(window.resetAt.getTime() / 1000);
  const wish = extra.enabled
    ? "the extra usage of this month cannot take it either. Wait until then, or ask your administrator for a higher cap or plan."
    : "Wait until then, or ask your administrator for a higher plan or for extra usage.";
  return new Fault(
    "usage_limit_reached",
    `The organization's ${windowNames[window.kind]} usage is used up until ${window.resetAt.toISOString()}${extra.enabled ? ", and " : ". "}${wish}`,
    {
      retryAfterSeconds: seconds,
      headers: {
        ...windowHeaders(windows),
        "x-should-retry": "false",
      },
      body: {
        window: window.kind,
        reset_at: window.resetAt.toISOString(),
        resets_at: resetsAt_s,
        resets_in_seconds: seconds,
        extra_usage: { enabled: extra.enabled, available: extraAvailable(shortage) },
        plan_type: plan.name,
      },
    },
  );
}

/** Micro-units that extra usage could still take. */
function extraAvailable({ extra }: Shortage): number {
  if (!extra.enabled) return 0;
  return Math.max(0, (extra.capUnits ?? Number.MAX_SAFE_INTEGER) - extra.used - extra.held);
}

/** What is left of a window is held by requests that are still running. */
export function usageReserved(shortage: Shortage): Fault {
  const kind = shortage.kinds[0] ?? "session";
  return new Fault(
    "usage_reserved",
    `What is left of the organization's ${windowNames[kind]} usage is held by requests that are still running. Try again when one of them has ended.`,
    { retryAfterSeconds: 1, headers: windowHeaders(shortage.windows) },
  );
}

export function concurrencyLimitExceeded(windows: WindowReadings, limits: UsageLimits): Fault {
  return new Fault(
    "concurrency_limit_exceeded",
    `The organization runs ${limits.concurrentRequests} requests at a time, and so many are running. Try again when one of them has ended.`,
    { retryAfterSeconds: 1, headers: windowHeaders(windows) },
  );
}

/** The window whose whole limit is below the least that this request must hold: waiting does not help. */
export function hopelessWindow(leastUnits: number, shortage: Shortage): WindowKind | null {
  const { extra, windows } = shortage;
  if (extra.enabled && (extra.capUnits === null || extra.capUnits >= leastUnits)) return null;
  return windowKinds.find((kind) => (windows[kind].limit ?? Number.POSITIVE_INFINITY) < leastUnits) ?? null;
}

export function beyondWholeLimit(kind: WindowKind, leastUnits: number, shortage: Shortage): Fault {
  return new Fault(
    "rate_limit_exceeded",
    `This request must hold at least ${leastUnits} units, more than the plan's whole ${windowNames[kind]} limit of ${shortage.windows[kind].limit}. Send less input, choose a cheaper model, or ask your administrator for a higher plan.`,
    { retryAfterSeconds: 60, headers: { ...windowHeaders(shortage.windows), "x-should-retry": "false" } },
  );
}
