/**
 * The rules for a file of organizations that its schema cannot express: whether its values agree with one another and
 * with the things that exist already. Pure.
 */

import { decimalOf, grouped } from "../../../core/inference/money.ts";
import { camelName } from "../../../core/schema/codec.ts";
import type { Path } from "../../../core/schema/walk.ts";
import type { Budget } from "../../../core/store/budget.ts";
import { noLimits, type Plan } from "../../../core/store/plan.ts";
import { ManagementError } from "../error.ts";
import { withinOrganization } from "../limit-change.ts";
import { isWindow } from "../limit-shape.ts";
import { plan_default } from "../organizations.ts";
import { countedLimits } from "../plans.ts";
import { type Amount, nanosOf, organizationsLimits, trimmed, valuesSet } from "./limits.ts";
import type { Step } from "./step.ts";
import { type Diff, type OrganizationEntry, ownOf } from "./wanted.ts";

/**
 * Checks an organization. Returns true if its teams and keys are to be skipped, because its entry is wrong or it is
 * closed.
 */
export function checkOrganization(
  diff: Diff,
  { slug, path, wanted, state }: OrganizationEntry,
  step: Step | null,
): boolean {
  const wrong = (at: Path, message: string) => {
    diff.problems.push({ path: at, message });
    return true;
  };
  const renamed = state ? undefined : diff.state.renamed.get(slug);
  if (renamed !== undefined) return wrong(path, `is called '${renamed}' now; correct the file`);
  const things = Object.keys({ ...wanted.teams, ...wanted.keys }).length;
  if (wanted.status === "closed" && things > 0) {
    return wrong(path, "is to be closed, which ends its keys and teams; take them out of the file");
  }
  if (state?.organization.status === "closed") {
    const isMeant = wanted.status === "closed" || (step === null && things === 0);
    const message = "is closed and cannot be changed; say so (status: closed), or take it out of the file";
    return isMeant || wrong(path, message);
  }
  if (step) checkPlanName(diff, path, step);
  if (step) checkHook(diff, path, step);
  return false;
}

function checkPlanName({ wanted, state, problems }: Diff, path: Path, step: Step): void {
  const plans = [...new Set([...state.plans.keys(), ...Object.keys(wanted.plans ?? {})])];
  const to = step.differences.find(({ field }) => field === "plan")?.to;
  const plan = to === undefined && step.action === "add" ? plan_default : to;
  if (typeof plan !== "string" || plans.includes(plan)) return;
  const message = `There is no plan '${plan}', which '${step.name}' is to have. There are: ${plans.join(", ")}.`;
  problems.push({ path: [...path, "plan"], message });
}

function checkHook({ problems }: Diff, path: Path, { differences }: Step): void {
  const changes = differences.filter(({ field }) => field.startsWith("notices."));
  const isNew = changes.length > 0 && changes.every(({ from }) => from === null);
  if (isNew && !changes.some(({ field }) => field === "notices.url")) {
    problems.push({ path: [...path, "notices"], message: "is a new webhook, which needs its url" });
  }
}

export function checkTeam(diff: Diff, entry: OrganizationEntry, step: Step): void {
  checkLimits(diff, entry, step, "limits", "team");
}

export function checkKey(diff: Diff, entry: OrganizationEntry, step: Step): void {
  const { slug } = entry;
  for (const { field, to } of step.differences) {
    if (field === "expires_at" && typeof to === "string" && Date.parse(to) <= diff.options.now_ms) {
      diff.problems.push({ path: [...step.path, field], message: `${to} is in the past` });
    }
    if (field === "team" && typeof to === "string" && !hasTeam(diff, entry, to)) {
      diff.problems.push({ path: [...step.path, field], message: `there is no team '${to}' of ${slug}` });
    }
  }
  checkLimits(diff, entry, step, "limits", "key");
}

/** Checks the values that are to be set for a person, organization by organization. */
export function checkPerson(diff: Diff, step: Step): void {
  const placed = step.differences.filter(({ field, to }) => field.includes(".") && to !== null);
  for (const [place, [first]] of Map.groupBy(placed, ({ field }) => field.split(".", 2).join("."))) {
    const [section = "", slug = ""] = place.split(".");
    const entry = entryOf(diff, slug);
    const wrong = (message: string) => diff.problems.push({ path: [...step.path, section, slug], message });
    const missing = missingOrganization(diff, slug);
    if (missing !== null) {
      wrong(missing);
    } else if (section === "limits") {
      checkLimits(diff, entry, step, place, "person");
    } else {
      const { team } = first!.to as { team?: string };
      if (team !== undefined && !hasTeam(diff, entry, team)) wrong(`there is no team '${team}' of ${slug}`);
    }
  }
}

/** The reason why nothing can be set in the organization; null: it exists, or this file creates it. */
function missingOrganization({ wanted, state }: Diff, slug: string): string | null {
  const written = ownOf(wanted.organizations, slug);
  if (written?.status === "closed") return `'${slug}' is to be closed`;
  if (written || state.open.has(slug)) return null;
  const renamed = state.renamed.get(slug);
  return renamed === undefined ? `there is no organization '${slug}'` : `'${slug}' is called '${renamed}' now`;
}

function entryOf({ wanted, state }: Diff, slug: string): OrganizationEntry {
  const written = ownOf(wanted.organizations, slug) ?? {};
  return { slug, path: ["organizations", slug], wanted: written, state: state.organizations.get(slug) ?? null };
}

/** Whether the organization will have the team after all steps. */
function hasTeam({ options }: Diff, { wanted, state }: OrganizationEntry, team: string): boolean {
  if (wanted.teams && Object.hasOwn(wanted.teams, team)) return true;
  const stays = !(options.prunes && wanted.teams);
  return stays && state?.teams.some(({ name }) => name === team) === true;
}

/** Reports limits above the organization's as problems, since the verbs would refuse them. */
function checkLimits(diff: Diff, entry: OrganizationEntry, step: Step, field: string, whose: string): void {
  const changes = step.differences.filter((one) => one.field.startsWith(`${field}.`) && one.to !== null);
  if (changes.length === 0) return;
  const set = changes.map(({ field: name, to }): [string, Amount] => [name.slice(field.length + 1), to as Amount]);
  const { slug: name, wanted, state } = entry;
  const inForce = organizationsLimits(wanted.limits as never, state?.organization.limits ?? null, planOf(diff, entry));
  const words = (limit: keyof Budget, amount: number) =>
    isWindow(limit) ? String(trimmed(decimalOf(amount, 9))) : grouped(amount);
  for (const [place, value] of valuesSet(Object.fromEntries(set)))
    try {
      withinOrganization(value, { inForce, name }, place === "own" ? whose : place, words);
    } catch (cause) {
      if (!(cause instanceof ManagementError)) throw cause;
      diff.problems.push({ path: [...step.path, ...field.split("."), ...placeOf(place)], message: cause.message });
    }
}

const placeOf = (place: string): Path =>
  place.startsWith("models.") ? ["models", place.slice("models.".length)] : [place];

/** The plan, with its limits, that the organization will have after all steps. */
function planOf({ wanted: file, state: { plans } }: Diff, { wanted, state }: OrganizationEntry): Plan | null {
  const name =
    wanted.plan === undefined ? (state ? state.organization.plan : plan_default) : (wanted.plan as string | null);
  if (name === null) return null;
  const known = plans.get(name);
  const written = Object.entries(file.plans?.[name] ?? {}).map(([limit, amount]) => [
    camelName(limit),
    nanosOf(limit, amount as Amount),
  ]);
  return { ...noLimits, ...(known && countedLimits(known)), ...Object.fromEntries(written), name };
}
