// The actions in histories (simulated sequences) of limits, drawn from a seed: changes of limits, teams, keys, raises,
// memberships and plans.

import { ManagementError } from "../../../../src/admin/management/error.ts";
import type { LimitValueChanges } from "../../../../src/admin/management/limit-shape.ts";
import { type Management, type VerbName, verbNamed } from "../../../../src/admin/management/verbs.ts";
import { inMoney } from "../../../harness/limits.ts";
import type { Draw } from "../acts.ts";
import type { World } from "./world.ts";

/**
 * People in these histories. `she` and `he` act as administrators of the organization, so they are bound by the rule of
 * one's own limits: an administrator must not raise limits that count for themselves.
 */
export const personNames = ["she", "he", "ann"] as const;
export type PersonName = (typeof personNames)[number];
export const isBound = (actor: string) => actor === "she" || actor === "he";

/**
 * `root` stands for an operator at a node's command line, `issuer` for the identity provider, which acts by sign-ins.
 */
export type Actor = "she" | "he" | "root" | "issuer";

export interface Act {
  actor: Actor;
  words: string;
  run(world: World): Promise<unknown>;
}

type Does = (by: Management, world: World) => Promise<unknown>;
const hour_ms = 3_600_000;

/** The names of the teams and keys that a history has made. */
export interface Made {
  teams: string[];
  keys: string[];
}

/** Draws an action; `by` is its actor, or any actor if absent. */
export function anyAct(draw: Draw, made: Made, number: number, by?: Actor): Act {
  const actor = by ?? (["she", "she", "she", "he", "he", "root", "root", "issuer"] as const)[draw(8)]!;
  if (actor === "issuer") return signIn(draw, made);
  const [verb, words, does] = anyVerb(draw, made, number);
  const isHers = (verbNamed(verb).roles as readonly string[]).includes("organization-admin");
  const whose = isHers ? actor : "root";
  return { actor: whose, words: `${whose}: ${verb} ${words}`, run: (world) => does(world.by(whose), world) };
}

/** The outcome of an action: `done`, or the code of its refusal. */
export async function outcomeOf(act: Act, world: World): Promise<string> {
  try {
    await act.run(world);
    return "done";
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown.code;
    throw thrown;
  }
}

/** A sign-in, by which the issuer gives a person another team, no team, or no membership at all. */
function signIn(draw: Draw, { teams }: Made): Act {
  const person = personNames[draw(3)]!;
  const team = draw(3) === 0 ? null : teams[draw(teams.length)]!;
  const isMember = draw(4) > 0;
  const words = `issuer: ${person} ${isMember ? `in ${team ?? "no team"}` : "nowhere"}`;
  return { actor: "issuer", words, run: (world) => world.signIn(person, isMember ? { team } : null) };
}

/**
 * A change of one limit: to a number, to "unlimited" (`none`), or to null, which leaves the limit to the inherited
 * value.
 */
function anyLimit(draw: Draw, most: number): LimitValueChanges {
  const name = draw(3) === 0 ? "requestsPerMinute" : "week";
  const kind = draw(6);
  if (kind < 2) return { [name]: kind === 0 ? null : "none" };
  return inMoney({ [name]: 1 + draw(most) });
}

function anyVerb(draw: Draw, made: Made, number: number): [VerbName, string, Does] {
  const limits = anyLimit(draw, 1_000);
  const person = personNames[draw(3)]!;
  const team = made.teams[draw(made.teams.length)]!;
  const key = made.keys[draw(made.keys.length)]!;
  const isWithout = draw(4) === 0;
  const pattern = (["acme/*", "acme/writer-1"] as const)[draw(2)]!;
  const raised = {
    isEnd: draw(4) === 0,
    limits: anyRaise(draw),
    until_h: 1 + draw(4),
    models: draw(3) === 0 ? pattern : null,
  };
  const raise = ({ now_ms }: World) => {
    const { isEnd, models, until_h } = raised;
    if (isEnd) return { models, limits: null };
    return { models, limits: inMoney(raised.limits), until: new Date(now_ms + until_h * hour_ms).toISOString() };
  };
  const models = { [pattern]: isWithout ? null : limits };
  const [limited, lifted, modelled] = [JSON.stringify(limits), JSON.stringify(raised), JSON.stringify(models)];
  const ofTeam = (field: "own" | "keys" | "members"): [VerbName, string, Does] => [
    "updateTeamLimits",
    `${team} ${field} ${limited}`,
    (by, { id }) => by.updateTeamLimits({ team: id(team), [field]: limits }),
  ];
  const ofWhole = (field: "own" | "keys" | "members"): [VerbName, string, Does] => [
    "updateOrganizationLimits",
    `${field} ${limited}`,
    (by, { organization }) => by.updateOrganizationLimits({ organization, [field]: limits }),
  ];
  const ofPerson = (who: PersonName, words: string, value: (world: World) => object): [VerbName, string, Does] => [
    "updatePersonLimits",
    `${who} ${words}`,
    (by, world) => by.updatePersonLimits({ person: world.id(who), organization: world.organization, ...value(world) }),
  ];
  const acts: [VerbName, string, Does][] = [
    ofPerson(person, limited, () => ({ own: limits })),
    ofPerson(person, modelled, () => ({ models })),
    ofPerson(person, lifted, (world) => ({ raise: raise(world) })),
    ofPerson("she", lifted, (world) => ({ raise: raise(world) })),
    ofWhole("own"),
    ofWhole("keys"),
    ofWhole("members"),
    ofTeam("own"),
    ofTeam("keys"),
    ofTeam("members"),
    ["updateTeamLimits", `${team} ${modelled}`, (by, { id }) => by.updateTeamLimits({ team: id(team), models })],
    [
      "updateTeamLimits",
      `${team} ${lifted}`,
      (by, world) => by.updateTeamLimits({ team: world.id(team), raise: raise(world) }),
    ],
    ["updateKeyLimits", `${key} ${modelled}`, (by, { id }) => by.updateKeyLimits({ id: id(key), models })],
    [
      "updateKeyLimits",
      `${key} ${lifted}`,
      (by, world) => by.updateKeyLimits({ id: world.id(key), raise: raise(world) }),
    ],
    ["removeTeam", team, (by, { id }) => by.removeTeam({ team: id(team) })],
    ["createTeam", limited, (by, world) => world.makeTeam(by, `team ${number}`, limits)],
    [
      "createKey",
      `of ${person} ${isWithout ? "as given" : limited}`,
      (by, world) => world.makeKey(by, `key ${number}`, { person, ...(isWithout ? {} : { limits }) }),
    ],
    [
      "createKey",
      `of nobody in ${team} ${limited}`,
      (by, world) => world.makeKey(by, `key ${number}`, { team, limits }),
    ],
    ["updateKeyLimits", `${key} ${limited}`, (by, { id }) => by.updateKeyLimits({ id: id(key), own: limits })],
    [
      "updateKey",
      `${key} in ${isWithout ? "no team" : team}`,
      (by, { id }) => by.updateKey({ id: id(key), team: isWithout ? null : id(team) }),
    ],
    ["rotateKey", key, (by, { id }) => by.rotateKey({ id: id(key) })],
    ["revokeKey", key, (by, { id }) => by.revokeKey({ id: id(key) })],
    [
      "giveMembership",
      `${person} in ${isWithout ? "no team" : team}`,
      (by, { id, organization }) =>
        by.giveMembership({ ...member, person: id(person), organization, team: isWithout ? null : id(team) }),
    ],
    ["takeMembership", person, (by, { id, organization }) => by.takeMembership({ person: id(person), organization })],
    ["suspendPerson", person, (by, { id }) => by.suspendPerson({ person: id(person) })],
    ["resumePerson", person, (by, { id }) => by.resumePerson({ person: id(person) })],
    ["forgetPerson", "ann", (by, { id }) => by.forgetPerson({ person: id("ann") })],
    [
      "setPlan",
      isWithout ? "none" : "small",
      (by, { organization }) => by.setPlan({ organization, plan: isWithout ? null : "small" }),
    ],
  ];
  return acts[draw(acts.length)]!;
}

const member = { role: "organization-admin" } as const;

/**
 * A raise to one of a few amounts, so that it often has the same amount as the raise in force and only lasts longer.
 */
const anyRaise = (draw: Draw) => ({ [draw(3) === 0 ? "requestsPerMinute" : "week"]: 500 * (1 + draw(3)) });
