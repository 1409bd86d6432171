/**
 * The DIFFERENCE between a file of organizations and the current state, as steps in the order in which they are made, and
 * what is wrong with the file beside its schema: nothing is changed before the whole of it is known. Pure.
 */
import type { Path } from "../../schema/walk.ts";
import type { BudgetedKey } from "../budgets.ts";
import { checkKey, checkOrganization, checkTeam } from "./checks.ts";
import type { Name, RemovableKind } from "./kind.ts";
import { keyKind, organizationKind, planKind, teamKind } from "./kinds.ts";
import { personSteps } from "./person-steps.ts";
import type { State } from "./state.ts";
import { type Problem, type Step, stepTo, stepWithout } from "./step.ts";
import type { Asked, Inside, Look, Section, WantedFile, WantedOrganization } from "./wanted.ts";

/** The steps in phases: those of one phase can be made in any order. */
export interface Differences {
  phases: Step[][];
  problems: Problem[];
  /** The people of the file who have not come in yet: nothing can be set for them. */
  absent: string[];
}

export function differences(wanted: WantedFile, state: State, asked: Asked): Differences {
  const look: Look = { wanted, state, asked, problems: [], absent: [] };
  const organizations = Object.entries(wanted.organizations).flatMap(([slug, one]) =>
    organizationSteps(look, slug, one),
  );
  const byPhase = Map.groupBy([...planSteps(look), ...organizations, ...personSteps(look)], phaseOf);
  const phases = [...byPhase].sort(([one], [other]) => one - other).map(([, steps]) => steps);
  return { phases, problems: look.problems, absent: look.absent };
}

/** A thing comes after those that it needs, and goes before them. */
const made = ["plan", "organization", "team", "key", "person"];
function phaseOf({ action, kind }: Step): number {
  return action === "remove" ? 2 * made.length - made.indexOf(kind) : made.indexOf(kind);
}

function planSteps(look: Look): Step[] {
  const { plans } = look.state;
  const wanted = look.wanted.plans;
  for (const name of Object.keys(wanted ?? {})) {
    if (plans.get(name)?.source !== "file") continue;
    const message = "stands in sluice.yaml or among the defaults; change it there, and take it out here";
    look.problems.push({ path: ["plans", name], message });
  }
  const standing = [...plans.values()].filter(({ source }) => source === "management");
  return sectionSteps(look, planKind, { organization: null, path: ["plans"], wanted, standing });
}

function organizationSteps(look: Look, slug: string, wanted: WantedOrganization): Step[] {
  const state = look.state.organizations.get(slug) ?? null;
  const inside: Inside = { slug, path: ["organizations", slug], wanted, state };
  const { teams, keys, ...values } = wanted;
  const now = state?.organization ?? null;
  const named = { organization: slug, name: slug, path: inside.path };
  const step = stepTo(organizationKind, { ...named, values, now }, look.problems);
  const standsStill = checkOrganization(look, inside, step);
  if (standsStill) return [];
  const section = (name: string) => ({ organization: slug, path: [...inside.path, name] });
  return [
    ...(step ? [step] : []),
    ...sectionSteps(look, teamKind, {
      ...section("teams"),
      wanted: teams,
      standing: state?.teams,
      check: (found, team) => checkTeam(look, inside, found, team),
    }),
    ...sectionSteps(look, keyKind, {
      ...section("keys"),
      wanted: keys,
      standing: state?.keys,
      check: (found, key) => checkKey(look, inside, found, key),
      isKept: ({ expiresAt }) => expiresAt !== null && expiresAt.getTime() <= look.asked.now_ms,
      complete: (found, named, key) => (look.asked.isSecretLost?.(key) ? withNewSecret(found, named, key) : found),
    }),
  ];
}

interface Things<Now> {
  organization: string | null;
  path: Path;
  wanted: Section | undefined;
  standing: readonly Now[] | undefined;
  check?(step: Step, now: Now | null): void;
  /** Whether it stays although the file does not name it, and makes way for another one of its name. */
  isKept?(thing: Now): boolean;
  complete?(step: Step | null, named: Name & { path: Path }, now: Now): Step | null;
}

/** The steps to the things that a section names and, with `prunes`, those without the others. */
function sectionSteps<Now extends { name: string }>(look: Look, kind: RemovableKind<Now>, things: Things<Now>): Step[] {
  const { organization, wanted, standing = [], check, isKept, complete } = things;
  if (!wanted) return [];
  const byName = Map.groupBy(standing, ({ name }) => name);
  const steps = Object.entries(wanted).flatMap(([name, values]) => {
    const named = { organization, name, path: [...things.path, name] };
    const found = byName.get(name) ?? [];
    const [now = null, ...others] = found.length > 1 ? found.filter((one) => isKept?.(one) !== true) : found;
    if (others.length > 0) {
      const message = `is the name of ${others.length + 1} keys of ${organization}; rename all but one of them`;
      look.problems.push({ path: named.path, message });
      return [];
    }
    const step = stepTo(kind, { ...named, values, now }, look.problems);
    if (step) check?.(step, now);
    const whole = now && complete ? complete(step, named, now) : step;
    return whole ? [whole] : [];
  });
  if (!look.asked.prunes) return steps;
  const removed = [...byName].flatMap(([name, [thing, ...others]]) => {
    const stays = Object.hasOwn(wanted, name) || others.length > 0 || isKept?.(thing!) === true;
    return stays ? [] : [stepWithout(kind, { organization, name }, things.path, thing!)];
  });
  return [...steps, ...removed];
}

/** A key whose only secret nobody has gets another one. */
function withNewSecret(step: Step | null, named: Name & { path: Path }, key: BudgetedKey): Step {
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
