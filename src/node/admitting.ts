/** The plans and budgets in force, and the admission of requests under them. */
import { admission } from "../core/admission/admission.ts";
import { limitsInForce } from "../core/admission/limits-in-force.ts";
import { moneyOf } from "../core/inference/money.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import { claimCurrency, problemOfCurrencies } from "../stores/postgres/currency.ts";
import { limits as limitStore } from "../stores/postgres/limits.ts";
import { plans } from "../stores/postgres/plans.ts";
import { disposable, type Foundation } from "./foundation.ts";
import { publishPlans } from "./reloading.ts";
import type { Stores } from "./stores.ts";

/** How long a stopping node with unsent settlements waits for a store that is away. */
const settle_ms_max = 10_000;

interface AdmissionDependencies {
  stores: Pick<Stores, "ledger" | "rates">;
  metrics: Metrics;
  /** Returns how long to wait for the store now, given the usual wait, in milliseconds (store-patience.ts). */
  patience(usual_ms: number): number;
}

export type Admitting = Awaited<ReturnType<typeof startAdmission>>;

export async function startAdmission({ serving, settings, log, outage }: Foundation, parts: AdmissionDependencies) {
  await using ending = new AsyncDisposableStack();
  const { configuration, database, fileAge_ms } = serving;
  const { stores, metrics, patience } = parts;
  const problem = problemOfCurrencies(
    await claimCurrency(database, settings.metering.currency),
    settings.metering.currency,
  );
  if (problem !== null) throw new Error(problem);
  const publishing = { store: plans(database), fileAge_ms, log };
  await publishPlans(configuration.current(), publishing, fileAge_ms());
  const inForce = await limitsInForce({ store: limitStore(database), failed: outage("limits_unread") });
  ending.defer(() => inForce.stop());
  const admitting = admission({
    ledger: stores.ledger,
    changes: inForce.changes,
    rates: stores.rates,
    metering: settings.metering,
    grant_ms: () => patience(settings.limits.grant_ms),
    log: outage("ledger_unreachable"),
    settled(answer, requestId) {
      metrics.settled(answer);
      if (answer.answer !== "late") return;
      const { charged, uncharged } = answer;
      const money = (nanos: number) => moneyOf(nanos, settings.metering.currency);
      log.event("warn", "settled_late", {
        request_id: requestId,
        charged: money(charged),
        uncharged: money(uncharged),
      });
    },
    waited: metrics.grant,
    sent: metrics.batch,
    recovered(count) {
      metrics.recovered(count);
      log.event("warn", "recovered", { requests: count });
    },
  });
  ending.defer(async () => {
    const requests = await admitting.stop(settle_ms_max);
    if (requests > 0)
      log.event("error", "unsettled", { requests, next: "another node, or the next start, recovers them" });
  });
  return disposable({ publishing, inForce, admission: admitting }, ending);
}
