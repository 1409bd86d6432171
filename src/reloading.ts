/** What a start and a reload check and tell of the configuration; of main's room. */
import type { Configuration } from "./config/configuration.ts";
import { lostPlans, takesPlansAway, usedBy } from "./config/plan-use.ts";
import type { Reloadable } from "./config/reload.ts";
import type { Log } from "./http/log.ts";
import type { PlanUse } from "./store/plan.ts";

/** Asks the database. */
type ReadUse = () => Promise<PlanUse[]>;

/** At a start: the notices, and loudly which organizations are on plans that there are not. */
export async function tellAtStart(configuration: Reloadable, use: ReadUse, log: Log): Promise<void> {
  logNotices(configuration, log);
  for (const lost of lostPlans(await use(), configuration.current().catalog.plans)) {
    const next = "their inference is answered 402: define the plan, or move them with sluice org plan";
    log.event("error", "plan_missing", { problem: usedBy(lost), next });
  }
}

/** A bad new file leaves the old one in force, and says so; so does one that takes a plan away that is in use. */
export async function reload(configuration: Reloadable, use: ReadUse, log: Log): Promise<void> {
  const outcome = await configuration.reload((next) => refusals(configuration.current(), next, use));
  logNotices(configuration, log);
  if (!outcome.ok)
    log.event("error", "configuration_refused", { problems: outcome.problems, in_force: "the previous one" });
  else
    log.event("info", "configuration_reloaded", {
      models: configuration.current().catalog.models.size,
      hash: configuration.hash(),
    });
}

async function refusals(before: Configuration, next: Configuration, use: ReadUse): Promise<string[]> {
  const plans = next.catalog.plans;
  if (next.reload.force || !takesPlansAway(before.catalog.plans, plans)) return [];
  const advice = "move them with sluice org plan, or set reload.force";
  return lostPlans(await use(), plans, before.catalog.plans).map((lost) => `${usedBy(lost)}; ${advice}`);
}

function logNotices(configuration: Reloadable, log: Log): void {
  for (const notice of configuration.current().notices) log.event("warn", "notice", { notice });
}
