// Judges whether an action has raised a limit that counts for a person. The limits in force are computed from the
// limits that the management verbs show for each subject, independently of the product's rule
// (src/stores/postgres/own-limits.ts).

import { ManagementError } from "../../../../src/admin/management/error.ts";
import type { LimitValue, SubjectLimitsShown } from "../../../../src/admin/management/limit-shape.ts";
import type { PersonName } from "./acts.ts";
import type { World } from "./world.ts";

type Shown = Pick<SubjectLimitsShown, "own" | "keys" | "members" | "models" | "raises">;
type Name = keyof LimitValue;

/** The limits of one subject that count together, and their raise (a temporary increase). */
interface Limits {
  /** For each limit, the first of these values that sets it decides. */
  values: (LimitValue | null)[];
  raise: Shown["raises"][number] | undefined;
}

/**
 * The limits that count for a person, for each of the person's API keys by its name, and for an API key that is yet to
 * be created. The inner map has the limits of each subject, and of each of the subject's patterns of models.
 */
export type Counting = Map<string, Map<string, Limits>>;

const toCome = "a key to come";

export async function countingFor(world: World, person: PersonName): Promise<Counting> {
  const { organization, id } = world;
  const root = world.by("root");
  const [whole, hers, { memberships }] = await Promise.all([
    root.findOrganizationLimits({ organization }),
    root.findPersonLimits({ person: id(person), organization }),
    root.findPerson({ person: id(person) }),
  ]);
  const teamOf = async (team: string | null) => (team === null ? null : root.findTeamLimits({ team }).catch(gone));
  const team = await teamOf(memberships[0]?.team?.id ?? null);
  const ofPerson = limitsOf("the person", hers, [team?.members ?? null, whole.members]);
  const ofTeam = (one: Shown | null, key: string | undefined) => (one ? limitsOf(`the team ${key}`, one, []) : []);
  const newKey: Limits = { values: [team?.keys ?? null, whole.keys], raise: undefined };
  const found: Counting = new Map([
    [toCome, new Map([...ofPerson, ["the key", newKey], ...ofTeam(team, memberships[0]?.team?.id)])],
  ]);
  for (const name of [...world.names()].filter((name) => name.startsWith("key "))) {
    const key = await root.findKey({ id: id(name) });
    if (key.personId !== id(person) || key.state !== "active") continue;
    const own = await teamOf(key.team?.id ?? null);
    const its = limitsOf("the key", await root.findKeyLimits({ id: id(name) }), [own?.keys ?? null, whole.keys]);
    found.set(name, new Map([...ofPerson, ...its, ...ofTeam(own, key.team?.id)]));
  }
  return found;
}

function gone(thrown: unknown): null {
  if (thrown instanceof ManagementError) return null;
  throw thrown;
}

/** The limits of a subject for all models, and for each pattern. `given`: the values that the subject inherits. */
function limitsOf(name: string, shown: Shown, given: (LimitValue | null)[]): [string, Limits][] {
  const raiseFor = (models: string | null) => shown.raises.find((one) => one.models === models);
  const patterns = Object.entries(shown.models).map(([models, value]): [string, Limits] => [
    `${name} for ${models}`,
    { values: [value], raise: raiseFor(models) },
  ]);
  return [[name, { values: [shown.own, ...given], raise: raiseFor(null) }], ...patterns];
}

/**
 * Describes the first limit that was raised, or returns null. The limits of an API key that was created meanwhile are
 * compared with those that "a key to come" had before.
 */
export function raisedBetween(before: Counting, after: Counting, now: Date): string | null {
  const ends = [...before.values(), ...after.values()].flatMap((limits) =>
    [...limits.values()].flatMap(({ raise }) => (raise ? [raise.until] : [])),
  );
  for (const [key, is] of after)
    for (const [name, was] of before.get(key) ?? before.get(toCome)!)
      for (const limit of limitNames(was))
        for (const at of [now, ...ends]) {
          const [least, most] = [limitAt(was, limit, at), limitAt(is.get(name), limit, at)];
          if (most > least) return `${name} had ${limit} ${least}, and has ${most} (${key})`;
        }
  return null;
}

const limitNames = ({ values }: Limits) => Object.keys(values.find((value) => value !== null) ?? {}) as Name[];

/** The limit at an instant; Infinity if there is none. */
function limitAt(limits: Limits | undefined, name: Name, at: Date): number {
  const said = limits?.values.find((value) => value?.[name] != null)?.[name];
  if (said == null || said === "none") return Number.POSITIVE_INFINITY;
  const raise = limits!.raise;
  const raised = raise && raise.until > at ? raise.limits[name] : null;
  return Math.max(amountOf(said), raised == null || raised === "none" ? 0 : amountOf(raised));
}

const amountOf = (value: number | { amount: string }) => (typeof value === "number" ? value : Number(value.amount));
