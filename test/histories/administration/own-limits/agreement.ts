// Checks whether the actions in memory do what the product does on Postgres: the same histories run on both, and the
// outcome of each action and all limits are compared. Actions at once have several possible outcomes; those on Postgres
// must be among those in memory.

import { isDeepStrictEqual } from "node:util";
import { ManagementError } from "../../../../src/admin/management/error.ts";
import type { SubjectLimitsShown } from "../../../../src/admin/management/limit-shape.ts";
import type { Database } from "../../../../src/stores/postgres/database.ts";
import { DatabaseError } from "../../../../src/stores/postgres/database-error.ts";
import { type Draw, drawnFrom } from "../acts.ts";
import { type Act, type Made, outcomeOf, personNames } from "./acts.ts";
import { actsAtOnce, atOnce, founded, type OwnLimitsHistory, passing_ms, remember } from "./history.ts";
import { MemoryWorld, PostgresWorld, type World } from "./world.ts";

const rounds = 6;
/** How many orders of statements are tried in memory until one comes out as on Postgres. */
const orders_max = 3_000;

interface Seen {
  outcomes: string[];
  limits: unknown;
}

/**
 * Runs the history of a seed on Postgres and in memory, and compares the outcomes. `db` is used by this history alone.
 */
export async function agreementHistory(db: Database, seed: number): Promise<OwnLimitsHistory> {
  const draw = drawnFrom(seed);
  const now_ms = Date.now();
  const stored = await PostgresWorld.new(db, now_ms);
  let memory = MemoryWorld.new(now_ms);
  await founded(memory, drawnFrom(seed));
  const made = await founded(stored, drawnFrom(seed));
  const history: OwnLimitsHistory = { acts: 0, refusals: 0, violation: null };
  for (let round = 0; round < rounds && history.violation === null; round++) {
    const ms = passing_ms(draw);
    const acts = actsAtOnce(draw, made, history.acts);
    const words = acts.map((act) => act.words).join(" | ");
    await Promise.all([stored.pass(ms), memory.pass(ms)]);
    const outcomes = await Promise.all(acts.map((act) => outcomeOnPostgres(act, stored)));
    history.acts += acts.length;
    history.refusals += outcomes.filter((outcome) => outcome !== "done").length;
    remember(made, stored);
    const seen = { outcomes, limits: await limitsIn(stored, made) };
    const same = await sameInMemory(memory, acts, { seen, made, draw });
    if (same instanceof MemoryWorld) memory = same;
    else history.violation = `after ${words}: ${JSON.stringify(seen)} on Postgres, and in memory ${same}`;
    if (memory.violation) history.violation = memory.violation;
  }
  return history;
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
 * The world (the simulated organization with its data) in memory after the actions, for an order of statements with the
 * same outcome as on Postgres. If there is no such order: the outcomes that came instead.
 */
async function sameInMemory(
  before: MemoryWorld,
  acts: readonly Act[],
  { seen, made, draw }: { seen: Seen; made: Made; draw: Draw },
): Promise<MemoryWorld | string> {
  const others = new Set<string>();
  for (let order = 0; order < (acts.length > 1 ? orders_max : 1); order++) {
    const world = before.copied();
    const outcomes = await atOnce(world, acts, drawnFrom(draw(2 ** 30)));
    const is = { outcomes, limits: await limitsIn(world, made) };
    if (isDeepStrictEqual(is, seen)) return world;
    others.add(JSON.stringify(is));
  }
  return [...others].join(" or ");
}

/** All limits, as the verbs that show them return them. The verbs run at once, as they change nothing. */
async function limitsIn(world: World, { teams, keys }: Made): Promise<unknown> {
  const root = world.by("root");
  const { organization, id } = world;
  const nameOf = (given: string | undefined) => [...world.names()].find((name) => id(name) === given) ?? null;
  const ofOrganization = async () => {
    const { data: _, ...whole } = await root.findOrganizationLimits({ organization });
    return valuesOf(whole);
  };
  const ofPerson = async (person: string) => {
    const { memberships, state } = await root.findPerson({ person: id(person) });
    const limits = valuesOf(await root.findPersonLimits({ person: id(person), organization }));
    return [state, memberships.map(({ team, source }) => [nameOf(team?.id), source]), limits];
  };
  const ofTeam = async (team: string) => {
    const { keys } = await root.findTeam({ team: id(team) });
    return [keys, valuesOf(await root.findTeamLimits({ team: id(team) }))];
  };
  const ofKey = async (key: string) => {
    const { team, state } = await root.findKey({ id: id(key) });
    return [nameOf(team?.id), state, valuesOf(await root.findKeyLimits({ id: id(key) }))];
  };
  const shown = [
    ["acme", ofOrganization()] as const,
    ...personNames.map((person) => [person, ofPerson(person)] as const),
    ...teams.map((team) => [team, ofTeam(team).catch(refusal)] as const),
    ...keys.filter(id).map((key) => [key, ofKey(key)] as const),
  ];
  const values = await Promise.all(shown.map(([, value]) => value));
  return JSON.parse(JSON.stringify(Object.fromEntries(shown.map(([name], at) => [name, values[at]]))));
}

function valuesOf({ own, keys, members, models, raises, inForce, version }: SubjectLimitsShown) {
  const raised = raises.map(({ models, limits, until }) => [models, limits, until]);
  return { own, keys, members, models, raised, inForce, version };
}

function refusal(thrown: unknown): string {
  if (thrown instanceof ManagementError) return thrown.code;
  throw thrown;
}
