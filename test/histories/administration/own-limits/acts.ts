// The acts of histories of limits: on limits, teams, keys, raises, memberships and plans, drawn from a seed.

import { ManagementError } from "../../../../src/admin/management/error.ts";
import { type Management, type VerbName, verbNamed } from "../../../../src/admin/management/verbs.ts";
import type { Draw } from "../acts.ts";
import type { World } from "./world.ts";

/** Two of them administer the organization, and so are held to their own limits. */
export const personNames = ["she", "he", "ann"] as const;
export type PersonName = (typeof personNames)[number];
export const isBound = (actor: string) => actor === "she" || actor === "he";

/** `root`: the user of a node. `issuer`: a sign-in. */
export type Actor = "she" | "he" | "root" | "issuer";

export interface Act {
  actor: Actor;
  words: string;
  run(world: World): Promise<unknown>;
}

type Does = (by: Management, world: World) => Promise<unknown>;
const hour_ms = 3_600_000;

/** The teams and keys of a history by their names: those that were made. */
export interface Made {
  teams: string[];
  keys: string[];
}

export function anyAct(draw: Draw, made: Made, number: number): Act {
  const actor = (["she", "she", "she", "he", "he", "root", "root", "issuer"] as const)[draw(8)]!;
  if (actor === "issuer") return signIn(draw, made);
  const [verb, words, does] = anyVerb(draw, made, number);
  const isHers = (verbNamed(verb).roles as readonly string[]).includes("organization-admin");
  const by = isHers ? actor : "root";
  return { actor: by, words: `${by}: ${verb} ${words}`, run: (world) => does(world.by(by), world) };
}

/** How an act ended: done, or the code of its refusal. */
export async function outcomeOf(act: Act, world: World): Promise<string> {
  try {
    await act.run(world);
    return "done";
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown.code;
    throw thrown;
  }
}

/** The issuer's word: another team, none, or no membership at all. */
function signIn(draw: Draw, { teams }: Made): Act {
  const person = personNames[draw(3)]!;
  const team = draw(3) === 0 ? null : teams[draw(teams.length)]!;
  const isMember = draw(4) > 0;
  const words = `issuer: ${person} ${isMember ? `in ${team ?? "no team"}` : "nowhere"}`;
  return { actor: "issuer", words, run: (world) => world.signIn(person, isMember ? { team } : null) };
}

const anyLimit = (draw: Draw, most: number) => {
  const name = draw(3) === 0 ? "requestsPerMinute" : "week";
  return { [name]: draw(4) === 0 ? null : 1 + draw(most) };
};

function anyVerb(draw: Draw, made: Made, number: number): [VerbName, string, Does] {
  const limits = anyLimit(draw, 1_000);
  const person = personNames[draw(3)]!;
  const team = made.teams[draw(made.teams.length)]!;
  const key = made.keys[draw(made.keys.length)]!;
  const isWithout = draw(4) === 0;
  const raise = draw(4) === 0 ? { end: true } : { limits: anyRaise(draw), until_h: 1 + draw(4) };
  const raising = ({ now_ms }: World) =>
    "end" in raise ? raise : { limits: raise.limits, until: new Date(now_ms + raise.until_h * hour_ms).toISOString() };
  const [limited, raised] = [JSON.stringify(limits), JSON.stringify(raise)];
  const acts: [VerbName, string, Does][] = [
    [
      "updatePersonLimits",
      `${person} ${limited}`,
      (by, { organization, id }) => by.updatePersonLimits({ person: id(person), organization, limits }),
    ],
    ["updateMemberDefault", limited, (by, { organization }) => by.updateMemberDefault({ organization, limits })],
    ["updateKeyDefault", limited, (by, { organization }) => by.updateKeyDefault({ organization, limits })],
    ["updateTeam", `${team} ${limited}`, (by, { id }) => by.updateTeam({ team: id(team), limits })],
    [
      "updateTeam",
      `${team} members ${limited}`,
      (by, { id }) => by.updateTeam({ team: id(team), memberLimits: limits }),
    ],
    ["updateTeam", `${team} keys ${limited}`, (by, { id }) => by.updateTeam({ team: id(team), keyLimits: limits })],
    ["removeTeam", team, (by, { id }) => by.removeTeam({ team: id(team) })],
    ["createTeam", limited, (by, world) => world.makeTeam(by, `team ${number}`, limits)],
    [
      "raisePerson",
      `${person} ${raised}`,
      (by, world) => by.raisePerson({ person: world.id(person), organization: world.organization, ...raising(world) }),
    ],
    [
      "raisePerson",
      `she ${raised}`,
      (by, world) => by.raisePerson({ person: world.id("she"), organization: world.organization, ...raising(world) }),
    ],
    ["raiseTeam", `${team} ${raised}`, (by, world) => by.raiseTeam({ team: world.id(team), ...raising(world) })],
    ["raiseKey", `${key} ${raised}`, (by, world) => by.raiseKey({ id: world.id(key), ...raising(world) })],
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
    ["updateKey", `${key} ${limited}`, (by, { id }) => by.updateKey({ id: id(key), limits })],
    [
      "updateKey",
      `${key} in ${isWithout ? "no team" : team}`,
      (by, { id }) => by.updateKey({ id: id(key), team: isWithout ? null : id(team) }),
    ],
    [
      "updateKey",
      `${key} in ${team} ${limited}`,
      (by, { id }) => by.updateKey({ id: id(key), team: id(team), limits }),
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

/** One of few, so that a raise is often the one that is in force, for longer. */
const anyRaise = (draw: Draw) => ({ [draw(3) === 0 ? "requestsPerMinute" : "week"]: 500 * (1 + draw(3)) });
