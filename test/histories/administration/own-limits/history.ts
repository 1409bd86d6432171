// Histories of an organization of which two administrators are held to the rule of one's own limits: the limits that count
// for either of them never rise by an action of theirs, in any order of statements. Other actors do things in between, so
// that there are raises, and teams to move to.

import { inMoney } from "../../../harness/limits.ts";
import { type Draw, drawnFrom } from "../acts.ts";
import { Deadlock } from "../memory/scheduler.ts";
import { type Act, anyAct, type Made, outcomeOf } from "./acts.ts";
import type { Defect } from "./defects.ts";
import { MemoryWorld, type World } from "./world.ts";

const rounds = 6;
const hour_ms = 3_600_000;
const starts_at_ms = Date.UTC(2026, 0, 5);

export interface OwnLimitsHistory {
  acts: number;
  refusals: number;
  violation: string | null;
}

export async function ownLimitsHistory(
  seed: number,
  { defect = null, beginnings = new Beginnings() }: { defect?: Defect | null; beginnings?: Beginnings } = {},
): Promise<OwnLimitsHistory> {
  const draw = drawnFrom(seed);
  const world = (await beginnings.any(draw)).copied(defect);
  const made: Made = { teams: [], keys: [] };
  remember(made, world);
  const history: OwnLimitsHistory = { acts: 0, refusals: 0, violation: null };
  for (let round = 0; round < rounds && history.violation === null; round++) {
    await world.pass(passing_ms(draw));
    const acts = actsAtOnce(draw, made, history.acts);
    const outcomes = await atOnce(world, acts, draw).catch(deadlocked);
    world.violation ??= typeof outcomes === "string" ? outcomes : null;
    history.acts += acts.length;
    if (world.violation) history.violation = `${world.violation}, by ${acts.map(({ words }) => words).join(" | ")}`;
    if (typeof outcomes !== "string") history.refusals += outcomes.filter((outcome) => outcome !== "done").length;
    remember(made, world);
  }
  return history;
}

/**
 * The worlds (organizations with people, teams and keys) with which histories begin. To found a world costs as much as
 * all actions of a history, so histories share some worlds.
 */
export class Beginnings {
  readonly #worlds = new Map<number, MemoryWorld>();

  async any(draw: Draw): Promise<MemoryWorld> {
    const which = draw(beginnings_max);
    let world = this.#worlds.get(which);
    if (!world) {
      world = MemoryWorld.new(starts_at_ms);
      await founded(world, drawnFrom(which));
      this.#worlds.set(which, world);
    }
    return world;
  }
}

const beginnings_max = 500;

function deadlocked(thrown: unknown): string {
  if (thrown instanceof Deadlock) return thrown.message;
  throw thrown;
}

export function atOnce(world: MemoryWorld, acts: readonly Act[], draw: Draw): Promise<string[]> {
  return world.memory.scheduler.atOnce(
    acts.map((act) => () => outcomeOf(act, world)),
    draw,
  );
}

/** Draws up to three actions; `number` is that of the first one. */
export function actsAtOnce(draw: Draw, made: Made, number: number): Act[] {
  return Array.from({ length: 1 + draw(3) }, (_, at) => anyAct(draw, made, number + at));
}

export const passing_ms = (draw: Draw) => (draw(5) === 0 ? hour_ms * (1 + draw(3)) : 0);

/** Founds the organization, with two teams, three people, a key of each of them and a key of nobody. */
export async function founded(world: World, draw: Draw): Promise<Made> {
  const root = world.by("root");
  const { organization, id } = world;
  const limits = () => inMoney({ week: 1 + draw(1_000), requestsPerMinute: draw(2) === 0 ? 1 + draw(1_000) : null });
  await world.begin();
  await world.makeTeam(root, "team a", limits(), draw(2) === 0 ? limits() : null);
  await world.makeTeam(root, "team b", limits(), limits());
  for (const [person, team] of [
    ["she", "team a"],
    ["he", draw(2) === 0 ? "team a" : "team b"],
    ["ann", "team b"],
  ] as const)
    await root.giveMembership({ person: id(person), organization, role: "organization-admin", team: id(team) });
  if (draw(2) === 0) await root.updateOrganizationLimits({ organization, members: limits() });
  if (draw(2) === 0) await root.updateOrganizationLimits({ organization, keys: limits() });
  for (const person of ["she", "he", "ann"] as const)
    await world.makeKey(root, `key of ${person}`, { person, limits: draw(2) === 0 ? limits() : {} });
  await world.makeKey(root, "key of nobody", { team: "team a", limits: limits() });
  return { teams: ["team a", "team b"], keys: ["key of she", "key of he", "key of ann", "key of nobody"] };
}

/** Adds the teams and keys that the last acts made. */
export function remember(made: Made, world: World): void {
  const names = [...world.names()];
  made.teams = names.filter((name) => name.startsWith("team "));
  made.keys = names.filter((name) => name.startsWith("key "));
}
