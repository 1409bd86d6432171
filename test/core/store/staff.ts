// The keys, people and teams of an organization in budget-laws.test.ts, kept both in a store and in the reference
// model.

import { noBudget } from "../../../src/admin/store/budget.ts";
import { memberIdOf } from "../../../src/admin/store/limits.ts";
import { matchesModel } from "../../../src/core/store/budget.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare } from "../../../src/core/store/ids.ts";
import type { UsageLimits } from "../../../src/core/store/ledger.ts";
import { setTeam, sumEarlier } from "../../../src/stores/postgres/budgets.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { uuidOfSubject } from "../../../src/stores/postgres/standing.ts";
import { setLimits, setRaise } from "../../harness/limits.ts";
import { issuer, newMember } from "../../harness/members.ts";
import { limitsOfMember, type ModelPeople, type ModelRaise, type ModelSubject, underRaise } from "./budget-model.ts";
import { newHex, type Store, unlimited } from "./ledger-stores.ts";
import { addKey, addTeam } from "./made.ts";
import { limitModels } from "./model-limits.ts";

/** The models that requests ask for, and patterns that match one, two or none of them. */
export const models = ["acme/large", "acme/small", "plain"] as const;
export const patterns = ["acme/large", "acme/*", "plain", "other/*"] as const;
/** The number of subjects that may have limits for models: four keys, two teams, the person, the organization. */
export const parents = 8;

interface ModelLimits extends ModelSubject {
  parent: string;
  models: string;
  set: boolean;
}

/**
 * Two keys of a person, of which one has limits and the other is only in a team; a limited key and an unlimited one
 * that belong to nobody; and two teams.
 */
export class Staff {
  /** The two limited keys, the two teams, and then the person. */
  readonly subjects: (ModelSubject & { base: UsageLimits; raise: ModelRaise | null })[];
  readonly models: readonly ModelLimits[];
  readonly teamOf = new Map<number, number | null>();
  #members: ModelPeople = { own: new Map(), defaults: new Map(), memberships: new Map() };

  private constructor(
    readonly store: Store,
    readonly organization: string,
    readonly person: string,
    readonly keys: readonly string[],
    teams: readonly string[],
    member: string,
    now_ms: () => number,
  ) {
    const ids = [keys[0]!, keys[1]!, ...teams, member];
    this.subjects = ids.map((id, place) => ({
      ...{ id, subject: place < 2 ? "key" : place < 4 ? "team" : "person", base: unlimited, raise: null },
      get limits() {
        return underRaise(this.base, this.raise, now_ms());
      },
    }));
    const parents: [string, ModelLimits["subject"]][] = [
      ...keys.map((id): [string, ModelLimits["subject"]] => [id, "key"]),
      ...teams.map((id): [string, ModelLimits["subject"]] => [id, "team"]),
      [member, "person"],
      [organization, "organization"],
    ];
    this.models = parents.flatMap(([parent, subject]) =>
      patterns.map((models) => ({
        ...{ id: `${parent} ${models}`, parent, subject, models, limits: unlimited, set: false },
        isLimited() {
          return this.set;
        },
      })),
    );
  }

  static async hired(store: Store, organization: string, now_ms: () => number): Promise<Staff> {
    const person = await newMember(store.db, newHex(), { organization });
    const keys: string[] = [];
    for (const place of [0, 1, 2, 3])
      keys.push((await addKey(store.db, organization, { personId: isHers(place) ? person : null })).id);
    const teams = [(await addTeam(store.db, organization)).id, (await addTeam(store.db, organization)).id];
    const member = memberIdOf(organization, person);
    return new Staff(store, organization, person, keys, teams, member, now_ms);
  }

  async raise(subject: number, raise: ModelRaise | null): Promise<void> {
    this.subjects[subject]!.raise = raise;
    await this.setRaise(this.subjects[subject]!.id, raise);
  }

  async setRaise(id: string, raise: ModelRaise | null): Promise<void> {
    const set = raise && { limits: { ...noBudget, ...raise.limits }, until: new Date(raise.until_ms) };
    await setRaise(this.store.db, { id, organizationId: this.organization }, set);
  }

  async limit(place: number, limits: UsageLimits): Promise<void> {
    const subject = this.subjects[place]!;
    if (subject.subject === "person") return this.limitPerson(limits);
    subject.base = limits;
    const named = { subject: subject.subject, id: subject.id, organizationId: this.organization };
    await setLimits(this.store.db, named, { own: limits });
  }

  async move(key: number, team: number | null): Promise<void> {
    this.teamOf.set(key, team);
    const inTeam = this.teamIdOf(key);
    const place = { owner: bare(this.organization, "org_"), team: inTeam && bare(inTeam, "team_") };
    const id = bare(this.keys[key]!, "key_");
    if (await this.store.db.transaction((tx) => setTeam(tx, { id, ...place }))) await sumEarlier(this.store.db, id);
  }

  async limitPerson(limits: UsageLimits | null): Promise<void> {
    const subject = { subject: "person", id: this.person, organizationId: this.organization } as const;
    await setLimits(this.store.db, subject, { own: limits ?? {} });
    this.#refresh({ ...this.#members, own: limits ? new Map([[this.subjects[4]!.id, limits]]) : new Map() });
  }

  /** Sets the default limits of the members of a team, or of the organization. */
  async limitMembers(team: number | null, limits: UsageLimits | null): Promise<void> {
    const id = team === null ? this.organization : this.subjects[2 + team]!.id;
    const kind = team === null ? "organization" : "team";
    await setLimits(this.store.db, { subject: kind, id, organizationId: this.organization }, { members: limits ?? {} });
    const defaults = new Map(this.#members.defaults);
    if (limits) defaults.set(id, limits);
    else defaults.delete(id);
    this.#refresh({ ...this.#members, defaults });
  }

  /** Moves the person and their keys to a team, or to none. `away` ends the membership; the keys keep their teams. */
  async movePerson(team: number | null | "away"): Promise<void> {
    const place = {
      organization: this.organization,
      team: typeof team === "number" ? this.subjects[2 + team]!.id : null,
    };
    const membership = { ...place, role: "member", scopes, models: null } as const;
    const memberships = team === "away" ? [] : [membership];
    const person = (await people(this.store.db).findPerson(this.person))!;
    const subject = person.subject!;
    await people(this.store.db).confirm({ id: this.person, issuer, subject, kind: "person", memberships });
    const where = team === "away" ? [] : [[this.subjects[4]!.id, place.team] as const];
    this.#refresh({ ...this.#members, memberships: new Map(where) });
    if (team !== "away") for (const key of this.keys.keys()) if (isHers(key)) this.teamOf.set(key, team);
  }

  teamIdOf(key: number): string | null {
    const team = this.teamOf.get(key) ?? null;
    return team === null ? null : this.subjects[2 + team]!.id;
  }

  isHers(keyId: string): boolean {
    return isHers(this.keys.indexOf(keyId));
  }

  /** The subjects against which a key's request for a model counts; without a model, those for any model. */
  of(keyId: string, model?: string): ModelSubject[] {
    const key = this.keys.indexOf(keyId);
    const team = this.teamOf.get(key) ?? null;
    const own = [
      ...(key < 2 ? [this.subjects[key]!] : []),
      ...(isHers(key) ? [this.subjects[4]!] : []),
      ...(team === null ? [] : [this.subjects[2 + team]!]),
    ];
    const parents = new Set([keyId, ...own.map(({ id }) => id), this.organization]);
    const counts = ({ parent, models = "" }: ModelLimits) =>
      parents.has(parent) && (model === undefined || matchesModel(models, model));
    return [...own, ...this.models.filter(counts)];
  }

  /**
   * Sets limits for a pattern of models. `place` is the subject's index among the keys, the teams, the person and the
   * organization, in this order.
   */
  async limitModels(place: number, pattern: number, limits: UsageLimits): Promise<void> {
    const one = this.models[place * patterns.length + pattern]!;
    one.limits = limits;
    one.set ||= Object.values(limits).some((limit) => limit !== null);
    const organization = bare(this.organization, "org_");
    await limitModels(this.store.db, organization, uuidOfSubject(one.parent), one.models, limits);
  }

  #refresh(members: ModelPeople): void {
    this.#members = members;
    this.subjects[4]!.base = limitsOfMember(members, this.organization, this.subjects[4]!.id);
  }
}

const isHers = (key: number): boolean => key === 0 || key === 2;
