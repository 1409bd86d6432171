// The environment of histories (simulated sequences) of limits: the product's own management verbs and stores on
// Postgres, for an organization whose people, teams and keys have names.

import {
  type ManagementOptions,
  type ManagementStores,
  managementContext,
} from "../../../../src/admin/management/context.ts";
import type { LimitValueChanges } from "../../../../src/admin/management/limit-shape.ts";
import { ownLimitsOf } from "../../../../src/admin/management/own-limits.ts";
import type { Verb } from "../../../../src/admin/management/verb.ts";
import { type Management, type VerbName, verbNamed } from "../../../../src/admin/management/verbs.ts";
import type { OwnLimits } from "../../../../src/admin/store/own-limits.ts";
import { jsonOf } from "../../../../src/core/schema/codec.ts";
import { scopes } from "../../../../src/core/store/directory.ts";
import { idOf } from "../../../../src/core/store/ids.ts";
import type { NamedMembership } from "../../../../src/core/store/people.ts";
import { noLimits } from "../../../../src/core/store/plan.ts";
import { administrationStores } from "../../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../../src/stores/postgres/database.ts";
import { people } from "../../../../src/stores/postgres/people.ts";
import { plans } from "../../../../src/stores/postgres/plans.ts";
import { managementStores } from "../../../admin/management/stores.ts";
import { isBound, type PersonName, personNames } from "./acts.ts";

const smallPlan = { ...noLimits, name: "small", week: 600 };

export class World {
  readonly organization = "acme";
  readonly now_ms = Date.now();
  readonly #ids = new Map<string, string>();
  readonly #actors = new Map<string, Management>();
  readonly #subjects = new Map(personNames.map((name) => [name, Bun.randomUUIDv7()]));

  private constructor(readonly db: Database) {}

  /** Makes the organization and its people. The organization of an earlier history stays, under another name. */
  static async new(db: Database): Promise<World> {
    const world = new World(db);
    await plans(db).publish([smallPlan], 0);
    await db.exec("update organization set slug = 'gone-' || left(md5(id::text), 20) where slug = 'acme'");
    for (const name of personNames) await world.#confirmed(name, []);
    world.#ids.set("acme", idOf(Bun.randomUUIDv7(), "org_"));
    const named = { id: world.id("acme"), slug: world.organization, name: world.organization };
    const { administration } = administrationStores(db);
    await administration.createOrganization({ ...named, plan: null, actor: "cli:root" });
    return world;
  }

  id = (name: string): string => this.#ids.get(name)!;

  names = (): IterableIterator<string> => this.#ids.keys();

  /** The management verbs with the rights of this actor, as src/node composes them. */
  by(actor: string): Management {
    let verbs = this.#actors.get(actor);
    if (!verbs) {
      verbs = this.#verbsOf(actor);
      this.#actors.set(actor, verbs);
    }
    return verbs;
  }

  async makeTeam(
    by: Management,
    name: string,
    limits: LimitValueChanges,
    members: LimitValueChanges | null = null,
  ): Promise<void> {
    const { id } = await by.createTeam({ organization: this.organization, name, limits });
    this.#ids.set(name, id);
    if (members) await by.updateTeamLimits({ team: id, members });
  }

  async makeKey(
    by: Management,
    name: string,
    { person, team, limits }: { person?: PersonName; team?: string; limits?: LimitValueChanges },
  ): Promise<void> {
    const of = { person: person && this.id(person), team: team && this.id(team) };
    const { id } = await by.createKey({ organization: this.organization, name, limits, ...of });
    this.#ids.set(name, id);
  }

  /** Signs the person in; `place` is the person's team in the organization, or null for no membership. */
  signIn(person: PersonName, place: { team: string | null } | null): Promise<void> {
    const team = place?.team == null ? null : this.id(place.team);
    const one = { organization: this.id("acme"), team, role: "organization-admin", scopes, models: null } as const;
    return this.#confirmed(person, place ? [one] : []);
  }

  /** Simulates that `ms` have passed: moves the end of each raise (a temporary increase of a limit) `ms` closer. */
  async pass(ms: number): Promise<void> {
    await this.db.query("update limit_value set until = until - $1::bigint * interval '1 ms'", [ms]);
  }

  async #confirmed(person: PersonName, memberships: NamedMembership[]): Promise<void> {
    const claims = { issuer: "https://login.example", subject: this.#subjects.get(person)!, kind: "person" } as const;
    const id = idOf(Bun.randomUUIDv7(), "per_");
    this.#ids.set(person, (await people(this.db).confirm({ id, ...claims, memberships })).id);
  }

  #stores(own: OwnLimits | null): ManagementStores {
    return { ...managementStores(this.db), ...administrationStores(this.db, { own }) };
  }

  #verbsOf(actor: string): Management {
    const within = isBound(actor) ? this.id("acme") : null;
    const named = isBound(actor) ? `person:${this.id(actor)}` : `cli:${actor}`;
    return unwritten({
      ...this.#stores(ownLimitsOf({ actor: named, within })),
      catalog: () => ({
        plans: new Map([[smallPlan.name, smallPlan]]),
        models: ["acme/writer-1"],
        upstreams: [],
        billing: { currency: "USD", provider: "Sluice" },
      }),
      actor: named,
      within,
      now_ms: () => this.now_ms,
      newUuid: () => Bun.randomUUIDv7(),
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    });
  }
}

/** The management verbs without the encoding of their answers as JSON, which costs more than the verbs themselves. */
function unwritten(options: ManagementOptions): Management {
  const context = managementContext(options);
  return new Proxy({} as Management, {
    get: (_, name) => {
      const { act, take, input } = verbNamed(name as VerbName) as Verb;
      return async (given: unknown = {}) => act(context, take(jsonOf(input, given)));
    },
  });
}
