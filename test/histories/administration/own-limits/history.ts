// Histories (simulated sequences) of an organization in which two administrators are bound by the rule of one's own
// limits: no action of theirs, nor several at once, raises a limit that counts for the actor. Other actors act in
// between, so that there are raises, and teams to move to.

import type { Database } from "../../../../src/stores/postgres/database.ts";
import { DatabaseError } from "../../../../src/stores/postgres/database-error.ts";
import { inMoney } from "../../../harness/limits.ts";
import { type Draw, drawnFrom } from "../acts.ts";
import { type Act, anyAct, isBound, type Made, outcomeOf, type PersonName } from "./acts.ts";
import { countingFor, raisedBetween } from "./judge.ts";
import { World } from "./world.ts";

const rounds = 6;
const hour_ms = 3_600_000;

export interface OwnLimitsHistory {
  acts: number;
  refusals: number;
  violation: string | null;
}

/** Runs the history of a seed. `db` is used by this history alone. */
export async function ownLimitsHistory(db: Database, seed: number): Promise<OwnLimitsHistory> {
  const draw = drawnFrom(seed);
  const world = await World.new(db);
  await founded(world, draw);
  const history: OwnLimitsHistory = { acts: 0, refusals: 0, violation: null };
  for (let round = 0; round < rounds && history.violation === null; round++) {
    await world.pass(draw(5) === 0 ? hour_ms * (1 + draw(3)) : 0);
    const acts = actsAtOnce(draw, world, history.acts);
    history.acts += acts.length;
    const { outcomes, raised } = await judged(world, acts);
    history.refusals += outcomes.filter((outcome) => outcome !== "done").length;
    const failed = outcomes.find((outcome) => outcome.startsWith("database error")) ?? null;
    const problem = raised ?? failed;
    if (problem) history.violation = `${problem}, by ${acts.map(({ words }) => words).join(" | ")}`;
  }
  return history;
}

/**
 * Runs actions concurrently. If all are by one person who is bound by the rule, compares the limits that count for that
 * person after the actions with those before.
 */
async function judged(world: World, acts: readonly Act[]): Promise<{ outcomes: string[]; raised: string | null }> {
  const [{ actor }] = acts as [Act];
  const whose = isBound(actor) && acts.every((act) => act.actor === actor) ? (actor as PersonName) : null;
  const before = whose && (await countingFor(world, whose));
  const outcomes = await Promise.all(acts.map((act) => outcomeOnPostgres(act, world)));
  const raised = whose && raisedBetween(before!, await countingFor(world, whose), new Date(world.now_ms));
  return { outcomes, raised: raised && `${actor}: ${raised}` };
}

async function outcomeOnPostgres(act: Act, world: World): Promise<string> {
  try {
    return await outcomeOf(act, world);
  } catch (thrown) {
    if (thrown instanceof DatabaseError) return `database error ${thrown.code}`;
    throw thrown;
  }
}

/**
 * Draws up to three actions; `number` is the number of the first one. Half of the time, the actor of the first one does
 * all.
 */
function actsAtOnce(draw: Draw, world: World, number: number): Act[] {
  const made: Made = { teams: namesOf(world, "team "), keys: namesOf(world, "key ") };
  const first = anyAct(draw, made, number);
  const actor = draw(2) === 0 && isBound(first.actor) ? first.actor : undefined;
  const others = Array.from({ length: draw(3) }, (_, at) => anyAct(draw, made, number + 1 + at, actor));
  return [first, ...others];
}

const namesOf = (world: World, prefix: string) => [...world.names()].filter((name) => name.startsWith(prefix));

/** Creates two teams, three people, a key for each of them and a key that belongs to nobody. */
async function founded(world: World, draw: Draw): Promise<void> {
  const root = world.by("root");
  const { organization, id } = world;
  const limits = () => inMoney({ week: 1 + draw(1_000), requestsPerMinute: draw(2) === 0 ? 1 + draw(1_000) : null });
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
}
