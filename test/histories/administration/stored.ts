// Runs histories (simulated sequences) of people and operators with the product's own actions on a database: after each
// round, an administrator must remain if there was one before, unless a sign-in took part.

import { secretOf } from "../../../src/core/auth/credential.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { NamedMembership } from "../../../src/core/store/people.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { administratorsOutlook } from "../../../src/stores/postgres/administrators.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { type Act, actsOf, drawnFrom, isIssuers, operators_max, people_max, type Role } from "./acts.ts";

export interface StoredHistory {
  acts: number;
  refusals: number;
  violation: string | null;
}

const uuid = () => Bun.randomUUIDv7();
const forService = (role: Role): NamedMembership => ({ organization: null, team: null, role, scopes, models: null });

/** Runs the history of a seed with the product's own actions. `db` is used by this history alone. */
export async function storedHistory(db: Database, seed: number): Promise<StoredHistory> {
  const draw = drawnFrom(seed);
  await db.exec("delete from membership; update operator set revoked_at = now() where revoked_at is null");
  const run = await actor(db);
  const history: StoredHistory = { acts: 0, refusals: 0, violation: null };
  const rounds = actsOf(draw, operators_max);
  for (const acts of rounds) {
    const hadOne = await isThere(db);
    const outcomes = await Promise.all(acts.map(run));
    history.acts += acts.length;
    history.refusals += outcomes.filter((outcome) => outcome === "last_admin").length;
    if (hadOne && !acts.some(isIssuers) && !(await isThere(db)))
      history.violation = `no administrator is left by ${JSON.stringify(acts)}`;
    if (history.violation) break;
  }
  return history;
}

const isThere = async (db: Database) => (await administratorsOutlook(db)).isLasting;

async function actor(db: Database): Promise<(act: Act) => Promise<"done" | "last_admin">> {
  const acts = administration(db);
  const subjects = Array.from({ length: people_max }, uuid);
  const confirm = async (person: number, role: Role | null) => {
    const claims = { issuer: "https://login.example", subject: subjects[person]!, kind: "person" } as const;
    const memberships = role === null ? [] : [forService(role)];
    return (await people(db).confirm({ id: idOf(uuid(), "per_"), ...claims, memberships })).id;
  };
  const persons = await Promise.all(subjects.map((_, person) => confirm(person, null)));
  const operators = new Map<number, string>();
  const outcomeOf = (answer: unknown) => (answer === "last_admin" ? "last_admin" : "done");
  return async (act) => {
    const by = act.actor.startsWith("person ") ? `person:${persons[Number(act.actor.slice(7))]}` : act.actor;
    const person = persons[act.number]!;
    const operator = operators.get(act.number) ?? idOf(uuid(), "op_");
    const secret = secretOf(`slo_${uuid()}`);
    switch (act.verb) {
      case "confirm":
        return outcomeOf(await confirm(act.number, act.role));
      case "giveMembership":
        return outcomeOf(await acts.giveMembership(person, forService(act.role), by));
      case "takeMembership":
        return outcomeOf(await acts.takeMembership(person, null, by));
      case "createOperator": {
        operators.set(act.number, operator);
        const expiresAt = act.expires ? new Date(Date.now() + 3_600_000) : null;
        const rights = { role: act.role, organizationId: null, expiresAt };
        return outcomeOf(await acts.createOperator({ id: operator, name: uuid(), ...rights, secret, actor: by }));
      }
      case "rotateOperator":
        return outcomeOf(
          await acts.rotateOperator({ id: operator, secret, graceEndsAt: new Date(Date.now() + 60_000), actor: by }),
        );
      case "revokeOperator":
        return outcomeOf(await acts.revokeOperator({ id: operator, old: false, actor: by }));
      default:
        return outcomeOf(await acts[act.verb](person, by));
    }
  };
}
