// The actions of people and operators in a history (a simulated sequence), drawn from a seed. A history has rounds of
// concurrent actions.

export const people_max = 3;
export const operators_max = 6;
const rounds = 12;

export type Role = "admin" | "viewer";

interface Common {
  /**
   * The person or the operator that the action is about. `number` counts persons and operators separately; `on` also
   * names which of the two it is.
   */
  number: number;
  on: string;
  /** The person or operator who acts. */
  actor: string;
}

export type Act = Common &
  (
    | { verb: "suspendPerson" | "resumePerson" | "forgetPerson" | "takeMembership" }
    | { verb: "giveMembership"; role: Role }
    /** A sign-in of the person, with the role that the issuer gives; null if it gives none. */
    | { verb: "confirm"; role: Role | null }
    | { verb: "createOperator"; role: Role; expires: boolean }
    | { verb: "rotateOperator" | "revokeOperator" }
  );

/** Whether the action is the issuer's, by a sign-in: only such an action may remove the last administrator. */
export const isIssuers = (act: Act) => act.verb === "confirm";

export type Draw = (below: number) => number;

/** Returns a generator that draws the same numbers for the same seed (mulberry32). */
export function drawnFrom(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const verbs = [
  ...["suspendPerson", "suspendPerson", "resumePerson", "forgetPerson", "takeMembership"],
  ...["giveMembership", "giveMembership", "giveMembership", "confirm", "confirm"],
  ...["createOperator", "rotateOperator", "revokeOperator", "revokeOperator"],
] as const;

/** Rounds of one to four concurrent actions. */
export function actsOf(draw: Draw, operators: number): Act[][] {
  let created = 0;
  const actors = ["cli:root", ...Array.from({ length: people_max }, (_, person) => `person ${person}`)];
  const one = (): Act => {
    const verb = verbs[draw(verbs.length)]! as Act["verb"];
    const actor = actors[draw(actors.length)]!;
    const role = draw(2) === 0 ? "admin" : "viewer";
    const person = draw(people_max);
    const onPerson = { number: person, on: `person ${person}`, actor };
    if (verb === "giveMembership") return { verb, role, ...onPerson };
    if (verb === "confirm") return { verb, role: draw(3) === 0 ? null : role, ...onPerson };
    const isNew = verb === "createOperator" && created < operators;
    if (verb === "createOperator" && !isNew) return { verb: "suspendPerson", ...onPerson };
    const operator = isNew ? created++ : draw(Math.max(created, 1));
    const onOperator = { number: operator, on: `operator ${operator}`, actor };
    if (verb === "createOperator") return { verb, role, expires: draw(3) === 0, ...onOperator };
    if (verb === "rotateOperator" || verb === "revokeOperator") return { verb, ...onOperator };
    return { verb, ...onPerson };
  };
  return Array.from({ length: rounds }, () => Array.from({ length: 1 + draw(4) }, one));
}
