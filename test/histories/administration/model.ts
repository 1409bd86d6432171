// A model of the actions on people and operators: transactions of several statements, which run at once in an order that a
// seed draws, as READ COMMITTED allows. After each commit, except those of the issuer, there must be an administrator if
// there was one before.

import { type Act, actsOf, drawnFrom, isIssuers, operators_max, people_max, type Role } from "./acts.ts";

export interface Person {
  rule: Role | null;
  hand: Role | null;
  isSuspended: boolean;
}

export interface Operator {
  role: Role;
  expires: boolean;
  isRevoked: boolean;
}

/** The rules of the product that can be taken out, one at a time. */
export const defects = {
  "acts on administrators run at once": "a lock",
  "nobody looks at what is left": "a check",
  "only those who act on themselves are refused": "whoever acts",
  "a viewer by hand leaves the role of a rule": "what is in force",
  "the issuer takes roles beside an act": "the issuer's lock",
  "an operator that expires is enough": "no expiry",
  "the look comes before the lock of the row": "the order of locks",
} as const;
export type Defect = keyof typeof defects;

export type Outcome = "done" | "last_admin";

export interface ModelHistory {
  acts: number;
  refusals: number;
  violation: string | null;
}

/** A transaction's next step waits for one of these: the lock of a name, or only its turn. */
type Step = { lock: string } | "turn";

interface Running {
  act: Act;
  locks: Set<string>;
  steps: Generator<Step, Outcome, void>;
  waitsFor: string | null;
  /**
   * Whether the transaction saw an administrator when it looked before it had the lock of its row; absent: it did not
   * look early.
   */
  hadOne?: boolean;
  writes: { people: Map<number, Person>; operators: Map<number, Operator> };
}

export class Model {
  readonly people = new Map<number, Person>();
  readonly operators = new Map<number, Operator>();
  readonly #held = new Map<string, Running>();

  constructor(readonly defect: Defect | null = null) {
    for (let person = 0; person < people_max; person++)
      this.people.set(person, { rule: null, hand: null, isSuspended: false });
  }

  /** Runs one act by itself. */
  alone(act: Act): Outcome {
    const [outcome] = this.atOnce([act], () => 0);
    return outcome!;
  }

  /** Runs actions at once, in an order that `draw` chooses: it returns a number below its argument. Throws Broken. */
  atOnce(acts: readonly Act[], draw: (below: number) => number): Outcome[] {
    const outcomes = new Map<Act, Outcome>();
    const running = new Set(acts.map((act) => this.#begun(act)));
    while (running.size > 0) {
      const free = [...running].filter(({ waitsFor }) => waitsFor === null || !this.#held.has(waitsFor));
      if (free.length === 0) throw new Broken("acts wait for each other");
      const one = free[draw(free.length)]!;
      if (one.waitsFor !== null) {
        this.#held.set(one.waitsFor, one);
        one.locks.add(one.waitsFor);
        one.waitsFor = null;
      }
      const { done, value } = one.steps.next();
      if (!done) {
        if (value !== "turn" && !one.locks.has(value.lock)) one.waitsFor = value.lock;
        continue;
      }
      if (value === "done") this.#commit(one);
      outcomes.set(one.act, value);
      for (const lock of one.locks) this.#held.delete(lock);
      running.delete(one);
    }
    return acts.map((act) => outcomes.get(act)!);
  }

  hasAdministrator(): boolean {
    return isThere(this.people.values(), this.operators.values(), null);
  }

  #begun(act: Act): Running {
    const running: Running = {
      ...{ act, locks: new Set<string>(), waitsFor: null },
      writes: { people: new Map(), operators: new Map() },
      steps: null as never,
    };
    running.steps = this.#transaction(running);
    return running;
  }

  #commit({ act, writes }: Running): void {
    const hadOne = this.hasAdministrator();
    for (const [person, value] of writes.people) this.people.set(person, value);
    for (const [operator, value] of writes.operators) this.operators.set(operator, value);
    if (hadOne && !isIssuers(act) && !this.hasAdministrator())
      throw new Broken(`no administrator is left by ${JSON.stringify(act)}`);
  }

  /** Whether a statement sees an administrator in what is committed, and in what its own transaction wrote. */
  #sees({ writes }: Running): boolean {
    const people = [...this.people].map(([person, one]) => writes.people.get(person) ?? one);
    const operators = [...new Map([...this.operators, ...writes.operators]).values()];
    return isThere(people, operators, this.defect);
  }

  *#transaction(running: Running): Generator<Step, Outcome, void> {
    const { act } = running;
    if (isIssuers(act)) return yield* this.#confirmation(running);
    const { defect } = this;
    if (defect !== "acts on administrators run at once") yield { lock: "administrators" };
    if (defect === "the look comes before the lock of the row") yield* this.#earlyLook(running);
    else yield { lock: act.on };
    const hadOne = running.hadOne ?? this.#sees(running);
    yield "turn";
    this.#write(running);
    yield "turn";
    const isExempt =
      defect === "nobody looks at what is left" ||
      (defect === "only those who act on themselves are refused" && act.actor !== act.on);
    const isLost = !isExempt && hadOne && !this.#sees(running);
    yield "turn";
    return isLost ? "last_admin" : "done";
  }

  *#earlyLook(running: Running): Generator<Step, void, void> {
    running.hadOne = this.#sees(running);
    yield { lock: running.act.on };
  }

  *#confirmation(running: Running): Generator<Step, Outcome, void> {
    const { act } = running;
    yield { lock: act.on };
    if (this.people.get(act.number)?.rule === "admin" && this.defect !== "the issuer takes roles beside an act") {
      // The confirmation of the sign-in begins again, with the lock on administrators first.
      this.#release(running);
      yield { lock: "administrators" };
      yield { lock: act.on };
    }
    yield "turn";
    this.#write(running);
    yield "turn";
    return "done";
  }

  #release(running: Running): void {
    for (const lock of running.locks) this.#held.delete(lock);
    running.locks.clear();
  }

  #write({ act, writes }: Running): void {
    const { number } = act;
    if (act.verb === "createOperator")
      return void writes.operators.set(number, { role: act.role, expires: act.expires, isRevoked: false });
    if (act.verb === "revokeOperator" || act.verb === "rotateOperator") {
      const operator = this.operators.get(number);
      const isRevoked = act.verb === "revokeOperator";
      if (operator && isRevoked) writes.operators.set(number, { ...operator, isRevoked });
      return;
    }
    writes.people.set(number, personAfter(act, this.people.get(number)!));
  }
}

export class Broken extends Error {}

function personAfter(act: Act, before: Person): Person {
  switch (act.verb) {
    case "suspendPerson":
      return { ...before, isSuspended: true };
    case "resumePerson":
      return { ...before, isSuspended: false };
    case "forgetPerson":
      return { ...before, rule: null, hand: null };
    case "giveMembership":
      return { ...before, hand: act.role };
    case "takeMembership":
      return { ...before, hand: null };
    case "confirm":
      return { ...before, rule: act.role };
    default:
      return before;
  }
}

function isThere(people: Iterable<Person>, operators: Iterable<Operator>, defect: Defect | null): boolean {
  const ignoresHand = defect === "a viewer by hand leaves the role of a rule";
  for (const { rule, hand, isSuspended } of people) {
    const role = ignoresHand && rule === "admin" ? rule : (hand ?? rule);
    if (role === "admin" && !isSuspended) return true;
  }
  const canExpire = defect === "an operator that expires is enough";
  for (const { role, expires, isRevoked } of operators)
    if (role === "admin" && !isRevoked && (!expires || canExpire)) return true;
  return false;
}

/** Runs the history of a seed: rounds of up to four actions at once. */
export function modelHistory(seed: number, defect: Defect | null = null): ModelHistory {
  const draw = drawnFrom(seed);
  const model = new Model(defect);
  const history: ModelHistory = { acts: 0, refusals: 0, violation: null };
  try {
    for (const acts of actsOf(draw, operators_max)) {
      const outcomes = model.atOnce(acts, draw);
      history.acts += acts.length;
      history.refusals += outcomes.filter((outcome) => outcome === "last_admin").length;
    }
  } catch (thrown) {
    if (!(thrown instanceof Broken)) throw thrown;
    history.violation = thrown.message;
  }
  return history;
}
