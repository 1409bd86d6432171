/** Checks, publishes and logs the configuration, at a start and at a reload. */
import { isDeepStrictEqual } from "node:util";
import type { PlanStore, PlanUse } from "../admin/store/plan.ts";
import type { Configuration } from "../config/configuration.ts";
import type { Agree, Reloadable } from "../config/reload.ts";
import type { Log } from "../core/http/log.ts";
import type { Plan } from "../core/store/plan.ts";
import { problemOfCurrencies } from "../stores/postgres/currency.ts";

type ReadUse = () => Promise<PlanUse[]>;

/** At a start, logs the configuration's notices, and an error for each missing plan that organizations have. */
export async function reportAtStart(
  configuration: Reloadable,
  use: ReadUse,
  inForce: ReadonlyMap<string, Plan>,
  log: Log,
): Promise<void> {
  logNotices(configuration, log);
  for (const lost of lostPlans(await use(), inForce)) {
    const next = "their inference is answered 402: define the plan, or move them with sluice org plan";
    log.event("error", "plan_missing", { problem: usedBy(lost), next });
  }
}

interface Publishing {
  store: Pick<PlanStore, "publish" | "taken">;
  /** The milliseconds since the file was last changed. Null if there is no file. */
  fileAge_ms(): number | null;
  log: Log;
}

/**
 * Puts the file's plans into force, unless the plans in force are from a file that was changed later. Rejects if the
 * store is away, or if the file names plans that were created at run time.
 */
export async function publishPlans(
  { catalog: { plans } }: Configuration,
  { store, log }: Publishing,
  age_ms: number | null,
) {
  const outcome = await store.publish([...plans.values()], age_ms);
  const next = "its plans are not in force: to have them all the same, touch the file and reload";
  if (typeof outcome === "object") throw new Error(whyTaken(outcome.taken));
  if (outcome === "older")
    log.event("warn", "plans_older", { problem: "a file that was changed later is known", next });
  if (outcome === "published") log.event("info", "plans_published", { plans: plans.size });
}

interface ReloadNeeds {
  use: ReadUse;
  /** Resolves the host names of new engines. */
  prepareNames(next: Configuration): Promise<void>;
}

/**
 * Replaces the configuration. If the file has problems, or removes a plan that is in use, the old configuration stays
 * in force, and the problems are logged.
 */
export async function reload(
  configuration: Reloadable,
  { use, prepareNames }: ReloadNeeds,
  publishing: Publishing,
  agree?: Agree,
): Promise<void> {
  const { log } = publishing;
  const before = configuration.current();
  const outcome = await configuration.reload(async (next) => {
    const taken = await madeAtRunTime(next, publishing.store);
    const lost = await refusals(configuration.current(), next, use);
    await prepareNames(next);
    return [...fileGone(before, next), ...currencyChanged(configuration.current(), next), ...taken, ...lost];
  }, agree);
  logNotices(configuration, log);
  if (!outcome.ok) {
    log.event("error", "configuration_refused", { problems: outcome.problems, in_force: "the previous one" });
    return;
  }
  const after = configuration.current();
  // On a reload, changed plans come into force even if the file has an old date.
  const isChanged = !isDeepStrictEqual(before.catalog.plans, after.catalog.plans);
  await publishPlans(after, publishing, isChanged ? 0 : publishing.fileAge_ms()).catch((cause) =>
    log.event("error", "plans_unpublished", { cause: String(cause), next: "reload again when the database is back" }),
  );
  log.event("info", "configuration_reloaded", { models: after.catalog.models.size, hash: configuration.hash() });
}

/** The problem to report if sluice.yaml is gone: without a file, a start would be that of a demonstration. */
function fileGone({ hasFile }: Configuration, next: Configuration): string[] {
  if (!hasFile || next.hasFile) return [];
  return ["sluice.yaml is not there any more; put it back, or restart the service to serve without it"];
}

/** The problem to report if the file has another currency: a running node keeps its database's currency. */
function currencyChanged({ metering: before }: Configuration, { metering: next }: Configuration): string[] {
  const problem = problemOfCurrencies(before.currency, next.currency);
  return problem === null ? [] : [problem];
}

type Plans = ReadonlyMap<string, Plan>;

/**
 * The plans that organizations have but that are missing, so that their inference is refused with 402. `before`: the
 * plans that were in force; if `before` is given, only the plans that this change removes.
 */
function lostPlans(uses: readonly PlanUse[], plans: Plans, before: Plans | null = null): PlanUse[] {
  return uses.filter(({ plan }) => !plans.has(plan) && (before?.has(plan) ?? true));
}

/** A plan and its users in words: `plan 'gold' is used by 2 organizations (acme, umbrella)`. */
function usedBy({ plan, organizations, slugs }: PlanUse): string {
  const more = organizations - slugs.length;
  const named = `${slugs.join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
  return `plan '${plan}' is used by ${organizations} organization${organizations === 1 ? "" : "s"} (${named})`;
}

async function refusals(before: Configuration, next: Configuration, use: ReadUse): Promise<string[]> {
  const { plans } = next.catalog;
  const isSmaller = [...before.catalog.plans.keys()].some((name) => !plans.has(name));
  if (next.reload.force || !isSmaller) return [];
  const advice = "move them with sluice org plan, or set reload.force";
  return lostPlans(await use(), plans, before.catalog.plans).map((lost) => `${usedBy(lost)}; ${advice}`);
}

/**
 * The problem to report if the file names plans that were created at run time. Empty if it names none, or if the store
 * is away: the publication then checks this instead.
 */
async function madeAtRunTime({ catalog }: Configuration, store: Pick<PlanStore, "taken">): Promise<string[]> {
  const taken = await store.taken([...catalog.plans.keys()]).catch((): string[] => []);
  return taken.length > 0 ? [whyTaken(taken)] : [];
}

const whyTaken = (names: readonly string[]) =>
  `sluice.yaml names what was made at run time: plan ${names.map((name) => `'${name}'`).join(", ")}; a name stands in ` +
  "one place only: rename it in the file, or first remove it with sluice plan remove";

function logNotices(configuration: Reloadable, log: Log): void {
  for (const notice of configuration.current().notices) log.event("warn", "notice", { notice });
}
