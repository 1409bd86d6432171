/**
 * The DIFFERENCE between a file of organizations and the current state, as steps in the order in which they are
 * performed, with the problems of the file that its schema cannot find. Nothing is changed before the whole difference
 * is known. Pure.
 */
import type { Path } from "../../../core/schema/walk.ts";
import type { Key } from "../key.ts";
import { checkKey, checkOrganization, checkTeam } from "./checks.ts";
import type { Name, RemovableKind } from "./kind.ts";
import { keyKind, organizationKind, planKind, teamKind } from "./kinds.ts";
import { personSteps } from "./person-steps.ts";
import type { State } from "./state.ts";
import { type Problem, type Step, stepTo, stepWithout } from "./step.ts";
import type { CompareOptions, Diff, OrganizationEntry, Section, WantedFile, WantedOrganization } from "./wanted.ts";

/** The steps in phases: the steps of one phase can be performed in any order. */
export interface Differences {
  phases: Step[][];
  problems: Problem[];
  /** The names in the file of people who have not signed in yet, so that nothing can be set for them. */
  absent: string[];
}

export function differences(wanted: WantedFile, state: State, options: CompareOptions): Differences {
  const diff: Diff = { wanted, state, options, problems: [], absent: [] };
  const organizations = Object.entries(wanted.organizations).flatMap(([slug, one]) =>
    organizationSteps(diff, slug, one),
  );
  const byPhase = Map.groupBy([...planSteps(diff), ...organizations, ...personSteps(diff)], phaseOf);
  const phases = [...byPhase].sort(([one], [other]) => one - other).map(([, steps]) => steps);
  return { phases, problems: diff.problems, absent: diff.absent };
}

/**
 * The order in which kinds of things are created: a thing is created after the things that it needs, and removed before
 * them.
 */
const order = ["plan", "organization", "team", "key", "person"];
function phaseOf({ action, kind }: Step): number {
  return action === "remove" ? 2 * order.length - order.indexOf(kind) : order.indexOf(kind);
}

function planSteps(diff: Diff): Step[] {
  const { plans } = diff.state;
  const wanted = diff.wanted.plans;
  for (const name of Object.keys(wanted ?? {})) {
    if (plans.get(name)?.source !== "file") continue;
    const message = "stands in sluice.yaml or among the defaults; change it there, and take it out here";
    diff.problems.push({ path: ["plans", name], message });
  }
  const standing = [...plans.values()].filter(({ source }) => source === "management");
  return sectionSteps(diff, planKind, { organization: null, path: ["plans"], wanted, standing });
}

function organizationSteps(diff: Diff, slug: string, wanted: WantedOrganization): Step[] {
  const state = diff.state.organizations.get(slug) ?? null;
  const entry: OrganizationEntry = { slug, path: ["organizations", slug], wanted, state };
  const { teams, keys, ...values } = wanted;
  const now = state?.organization ?? null;
  const named = { organization: slug, name: slug, path: entry.path };
  const step = stepTo(organizationKind, { ...named, values, now }, diff.problems);
  if (checkOrganization(diff, entry, step)) return [];
  const section = (name: string) => ({ organization: slug, path: [...entry.path, name] });
  return [
    ...(step ? [step] : []),
    ...sectionSteps(diff, teamKind, {
      ...section("teams"),
      wanted: teams,
      standing: state?.teams,
      check: (found) => checkTeam(diff, entry, found),
    }),
    ...sectionSteps(diff, keyKind, {
      ...section("keys"),
      wanted: keys,
      standing: state?.keys,
      check: (found) => checkKey(diff, entry, found),
      isKept: ({ expiresAt }) => expiresAt !== null && expiresAt.getTime() <= diff.options.now_ms,
      complete: (found, named, key) => (diff.options.isSecretLost?.(key) ? withNewSecret(found, named, key) : found),
    }),
  ];
}

interface Things<Now> {
  organization: string | null;
  path: Path;
  wanted: Section | undefined;
  standing: readonly Now[] | undefined;
  check?(step: Step): void;
  /**
   * Whether the thing stays although the file does not name it. If several things have the same name, a thing that
   * stays is left out of the comparison.
   */
  isKept?(thing: Now): boolean;
  complete?(step: Step | null, named: Name & { path: Path }, now: Now): Step | null;
}

/**
 * The steps that create or change the things of a section and, with `prunes`, remove the things that it does not name.
 */
function sectionSteps<Now extends { name: string }>(diff: Diff, kind: RemovableKind<Now>, things: Things<Now>): Step[] {
  const { organization, wanted, standing = [], check, isKept, complete } = things;
  if (!wanted) return [];
  const byName = Map.groupBy(standing, ({ name }) => name);
  const steps = Object.entries(wanted).flatMap(([name, values]) => {
    const named = { organization, name, path: [...things.path, name] };
    const found = byName.get(name) ?? [];
    const [now = null, ...others] = found.length > 1 ? found.filter((one) => isKept?.(one) !== true) : found;
    if (others.length > 0) {
      const message = `is the name of ${others.length + 1} keys of ${organization}; rename all but one of them`;
      diff.problems.push({ path: named.path, message });
      return [];
    }
    const step = stepTo(kind, { ...named, values, now }, diff.problems);
    if (step) check?.(step);
    const whole = now && complete ? complete(step, named, now) : step;
    return whole ? [whole] : [];
  });
  if (!diff.options.prunes) return steps;
  const removed = [...byName].flatMap(([name, [thing, ...others]]) => {
    const stays = Object.hasOwn(wanted, name) || others.length > 0 || isKept?.(thing!) === true;
    return stays ? [] : [stepWithout(kind, { organization, name }, things.path, thing!)];
  });
  return [...steps, ...removed];
}

/** Adds a new secret to a key whose only secret was lost. */
function withNewSecret(step: Step | null, named: Name & { path: Path }, key: Key): Step {
  const base = step ?? {
    ...named,
    action: "change",
    kind: "key",
    differences: [],
    calls: [],
    version: key.version,
  };
  return {
    ...base,
    differences: [...base.differences, { field: "secret", from: "lost", to: "a new one" }],
    calls: [...base.calls, { verb: "rotateKey", input: { id: key.id, grace: "0s" } }],
  };
}
