// The two worlds in which histories of limits run: the product's own stores on Postgres, and stores in memory. In both, the
// actions are the verbs of src/management, and the rule of src/stores/postgres/own-limits.ts is applied to every
// transaction of an actor who is held to it.

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
import { administrationStores } from "../../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../../src/stores/postgres/database.ts";
import { people } from "../../../../src/stores/postgres/people.ts";
import { plans } from "../../../../src/stores/postgres/plans.ts";
import { managementStores } from "../../../admin/management/stores.ts";
import { type Committed, Memory } from "../memory/memory.ts";
import { confirm } from "../memory/people.ts";
import { memoryStores } from "../memory/stores.ts";
import { type PersonRow, smallPlan } from "../memory/tables.ts";
import { isBound, type PersonName, personNames } from "./acts.ts";
import { type Defect, databasesOf } from "./defects.ts";
import { raisedBy } from "./judge.ts";

/** An organization, with its people, teams and keys by their names. */
export abstract class World {
  readonly organization = "acme";
  readonly #actors = new Map<string, Management>();

  constructor(
    readonly now_ms: number,
    protected readonly ids: Map<string, string>,
  ) {}

  id = (name: string): string => this.ids.get(name)!;

  names = (): IterableIterator<string> => this.ids.keys();

  async begin(): Promise<void> {
    const stores = this.stores(null, "root");
    const named = { id: this.id("acme"), slug: this.organization, name: this.organization };
    await stores.administration.createOrganization({ ...named, plan: null, actor: "cli:root" });
  }

  /** The verbs, as src/node gives them to this actor. */
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
    this.ids.set(name, id);
    if (members) await by.updateTeamLimits({ team: id, members });
  }

  async makeKey(
    by: Management,
    name: string,
    { person, team, limits }: { person?: PersonName; team?: string; limits?: LimitValueChanges },
  ): Promise<void> {
    const of = { person: person && this.id(person), team: team && this.id(team) };
    const { id } = await by.createKey({ organization: this.organization, name, limits, ...of });
    this.ids.set(name, id);
  }

  /** A sign-in of the person; `place` null: in no organization. */
  signIn(person: PersonName, place: { team: string | null } | null): Promise<void> {
    const team = place?.team == null ? null : this.id(place.team);
    const one = { organization: this.id("acme"), team, role: "organization-admin", scopes, models: null } as const;
    return this.confirmed(person, place ? [one] : []);
  }

  protected abstract confirmed(person: PersonName, memberships: NamedMembership[]): Promise<void>;
  protected abstract stores(own: OwnLimits | null, actor: string): ManagementStores;
  protected abstract newUuid(): string;
  protected abstract random(bytes: number): Uint8Array;
  /** Acts as if `ms` had passed: moves the end of each raise (a temporary increase of a limit) `ms` closer. */
  abstract pass(ms: number): Promise<void>;

  #verbsOf(actor: string): Management {
    const within = isBound(actor) ? this.id("acme") : null;
    const named = isBound(actor) ? `person:${this.id(actor)}` : `cli:${actor}`;
    const plans = new Map([[smallPlan.name, smallPlan]]);
    return unwritten({
      ...this.stores(ownLimitsOf({ actor: named, within }), actor),
      catalog: () => ({
        plans,
        models: ["acme/writer-1"],
        upstreams: [],
        billing: { currency: "USD", provider: "Sluice" },
      }),
      actor: named,
      within,
      now_ms: () => this.now_ms,
      newUuid: () => this.newUuid(),
      random: (bytes) => this.random(bytes),
    });
  }
}

export class MemoryWorld extends World {
  /** A limit that counts for an actor and that an action of theirs raised, in words; null: there was none. */
  violation: string | null = null;

  private constructor(
    readonly memory: Memory,
    ids: Map<string, string>,
    readonly defect: Defect | null,
    /** How many IDs were made. */
    private made = 0,
  ) {
    super(memory.now.getTime(), ids);
  }

  static new(now_ms: number): MemoryWorld {
    const memory = new Memory(new Date(now_ms));
    const world = new MemoryWorld(memory, new Map(), null);
    for (const name of personNames) {
      const id = idOf(world.newUuid(), "per_");
      world.ids.set(name, id);
      memory.tables.table("people").set(id, newPerson(id, name, memory.now));
    }
    world.ids.set("acme", idOf(world.newUuid(), "org_"));
    return world;
  }

  copied(defect: Defect | null = null): MemoryWorld {
    return new MemoryWorld(this.memory.copied(), new Map(this.ids), defect, this.made);
  }

  protected newUuid(): string {
    this.made += 1;
    return `01900000-0000-7000-8000-${this.made.toString(16).padStart(12, "0")}`;
  }
  /** Zeros are enough: no two secrets are compared here. */
  protected random = (bytes: number): Uint8Array => new Uint8Array(bytes);

  protected confirmed(person: PersonName, memberships: NamedMembership[]): Promise<void> {
    return confirm(this.memory.database(), this.id(person), memberships);
  }

  async pass(ms: number): Promise<void> {
    const values = this.memory.tables.table("values");
    for (const [id, { until, ...value }] of values)
      if (until) values.set(id, { ...value, until: new Date(until.getTime() - ms) });
  }

  protected stores(own: OwnLimits | null, actor: string): ManagementStores {
    // The judge looks at all actions of these actors, also where the product does not hold the actor to the rule.
    const whose = isBound(actor) ? { organizationId: this.id("acme"), personId: this.id(actor) } : null;
    const judge: Committed = (before, after) => {
      const raised = whose && raisedBy(before, after, whose);
      if (raised) this.violation = `${actor}: ${raised}`;
    };
    return memoryStores(databasesOf(this.memory, own, { defect: this.defect, committed: whose && judge }));
  }
}

export class PostgresWorld extends World {
  private constructor(
    readonly db: Database,
    now_ms: number,
    ids: Map<string, string>,
  ) {
    super(now_ms, ids);
  }

  static async new(db: Database, now_ms: number): Promise<PostgresWorld> {
    const world = new PostgresWorld(db, now_ms, new Map());
    await plans(db).publish([smallPlan], 0);
    await db.exec("update organization set slug = 'gone-' || left(md5(id::text), 20) where slug = 'acme'");
    for (const name of personNames) await world.confirmed(name, []);
    world.ids.set("acme", idOf(world.newUuid(), "org_"));
    return world;
  }

  protected newUuid(): string {
    return Bun.randomUUIDv7();
  }

  protected random = (bytes: number): Uint8Array => crypto.getRandomValues(new Uint8Array(bytes));

  readonly #subjects = new Map(personNames.map((name) => [name, Bun.randomUUIDv7()]));

  protected async confirmed(person: PersonName, memberships: NamedMembership[]): Promise<void> {
    const claims = { issuer: "https://login.example", subject: this.#subjects.get(person)!, kind: "person" } as const;
    const confirmed = await people(this.db).confirm({ id: idOf(this.newUuid(), "per_"), ...claims, memberships });
    this.ids.set(person, confirmed.id);
  }

  async pass(ms: number): Promise<void> {
    await this.db.query("update limit_value set until = until - $1::bigint * interval '1 ms'", [ms]);
  }

  protected stores(own: OwnLimits | null): ManagementStores {
    return { ...managementStores(this.db), ...administrationStores(this.db, { own }) };
  }
}

/** The verbs without the JSON of their answers, which costs more than the verbs' work. */
function unwritten(options: ManagementOptions): Management {
  const context = managementContext(options);
  return new Proxy({} as Management, {
    get: (_, name) => {
      const { act, take, input } = verbNamed(name as VerbName) as Verb;
      return async (given: unknown = {}) => act(context, take(jsonOf(input, given)));
    },
  });
}

function newPerson(id: string, name: string, at: Date): PersonRow {
  return {
    id,
    issuer: "https://login.example",
    subject: name,
    kind: "person",
    email: null,
    isEmailVerified: false,
    name,
    groups: [],
    groupsAt: null,
    createdAt: at,
    confirmedAt: at,
    suspendedAt: null,
    notBefore: null,
    forgottenAt: null,
    version: 1,
  };
}
