/**
 * Organizations, people and keys for tests of access rights: two organizations, people of every role, and keys of each
 * kind of a person in one of them. Callers use the verbs through the contexts that a node makes for them.
 */

import { type Caller, localCaller, operatorCaller } from "../../../src/admin/management/caller.ts";
import { client, direct } from "../../../src/admin/management/client.ts";
import { type Management, verbNamed } from "../../../src/admin/management/verbs.ts";
import { hashKey, key_random_bytes, newKey, secretOf } from "../../../src/core/auth/credential.ts";
import { type KeyKind, scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { PersonKind, PersonRole } from "../../../src/core/store/people.ts";
import { type Administering, administering } from "../../../src/node/administering.ts";
import type { Database, Transaction } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { signIns } from "../../../src/stores/postgres/sign-ins.ts";
import { cameIn, issuer, type Said } from "../../harness/members.ts";
import { plansNamed } from "./empty-ledger.ts";

const uuid = () => Bun.randomUUIDv7();
const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
const accessToken = () => secretOf(newKey(random(key_random_bytes), "slt_"));

export interface World {
  db: Database;
  /** The verbs with the rights of the node's own system user. */
  manage: Management;
  acme: string;
  globex: string;
  /** The teams of acme; Ann and Lea are in `research`. */
  teams: { research: string; support: string };
  /** The IDs of people, by their names. */
  people: Record<"ann" | "bob" | "lea" | "gus" | "vic" | "ada", string>;
  /** The IDs of Ann's keys in acme, by kind. */
  keys: Record<KeyKind, string>;
}

export function nodeOn(db: Database, book = ledger(db, { recovery: "checkpoint" })): Administering {
  return administering(
    {
      database: db,
      ledger: book,
      refused: refusedRequests(db),
      catalog: async () => ({
        plans: new Map((await plans(db).inForce()).map((plan) => [plan.name, plan])),
        models: ["acme/writer-1"],
        upstreams: ["gpu-1"],
        billing: { currency: "USD", provider: "Example AI" },
      }),
      configuration: () => ({ ...verbNamed("showConfiguration").example.answer, identity: identitySettings }),
      server: {} as never,
      limits: { failed_authentications_per_minute: 300 } as never,
      changed() {},
    },
    "1.2.3",
  );
}

const identitySettings = {
  ...{ serviceUrl: "https://sluice.example", consoleUrl: "https://console.sluice.example", rules: [] },
  issuers: [{ issuer, clientId: "sluice", hasClientSecret: true, audiences: [] }],
};

export async function newWorld(db: Database): Promise<World> {
  await plans(db).publish([...plansNamed("starter", "pro").values()], null);
  const manage = client(nodeOn(db).actAs("cli:test"));
  const [acme, globex] = [
    await manage.createOrganization({ slug: "acme" }),
    await manage.createOrganization({ slug: "globex" }),
  ];
  const team = async (name: string) => (await manage.createTeam({ organization: "acme", name })).id;
  const teams = { research: await team("research"), support: await team("support") };
  const ann = await newPerson(db, "ann", { role: "member", organization: "acme", team: "research" });
  const named = {
    ann,
    bob: await newPerson(db, "bob", { role: "member", organization: "acme" }),
    lea: await newPerson(db, "lea", { role: "organization-admin", organization: "acme", team: "research" }),
    gus: await newPerson(db, "gus", { role: "organization-admin", organization: "globex" }),
    vic: await newPerson(db, "vic", { role: "viewer" }),
    ada: await newPerson(db, "ada", { role: "admin" }),
  };
  return {
    db,
    manage,
    acme: acme.id,
    globex: globex.id,
    teams,
    people: named,
    keys: await keysOf(db, ann, acme.id, teams.research),
  };
}

interface Place {
  role: PersonRole;
  organization?: string;
  team?: string | null;
  kind?: PersonKind;
  models?: string[] | null;
}

export function newPerson(
  db: Database,
  name: string,
  { role, organization, team = null, kind = "person", models = null }: Place,
  said: Partial<Said> = {},
): Promise<string> {
  const memberships = [{ organization: organization ?? null, team, role, scopes, models }];
  return cameIn(db, { subject: name, kind, memberships, ...said });
}

/** Creates a key of each kind for a person in an organization. */
export async function keysOf(
  db: Database,
  personId: string,
  organizationId: string,
  teamId: string | null,
): Promise<World["keys"]> {
  const own = await client(nodeOn(db).actAs("cli:test")).createKey({
    ...{ organization: organizationId, name: "laptop", person: personId },
  });
  return { key: own.id, ...(await tokensOf(db, personId, organizationId, teamId)) };
}

/** Creates a person's sign-in, and the key that stands for the person's identity tokens. */
export async function tokensOf(db: Database, personId: string, organizationId: string, teamId: string | null) {
  const signIn = idOf(uuid(), "key_");
  await signIns(db).begin({
    ...{ keyId: signIn, personId, organizationId, teamId, scopes, models: null, issuer, issuerSession: "s1" },
    ...{ tokens: new Uint8Array([1]), lasts_ms: null, agent: "sluice", address: "192.0.2.1" },
    ...{ access: { secret: accessToken(), lasts_ms: 3_600_000 }, refreshHash: hashKey(uuid()) },
  });
  return { "sign-in": signIn, jwt: await tokenKeyOf(db, personId, organizationId) };
}

/** The current key that stands for the person's identity tokens. */
export async function tokenKeyOf(db: Database, personId: string, organization: string) {
  const found = await people(db).tokenKey({ id: idOf(uuid(), "key_"), personId, organization });
  return found!.id;
}

/** The caller for a person with this role who has signed in to the console. */
export function personCaller(id: string, role: Caller["role"], within: string | null): Caller {
  const person = role === "member" ? id : null;
  return { role, name: id, actor: `person:${id}`, within, person, noted: { person: id } };
}

const operator = (name: string, role: "admin" | "viewer" | "organization-admin", organizationId: string | null) =>
  operatorCaller({ name, role, organizationId, id: `op_${name}` } as Parameters<typeof operatorCaller>[0]);

/** Ten callers. Only Ann has keys, those of the `World`. */
export function callersIn({ acme, globex, people }: World) {
  return {
    "command line": localCaller("cli:test"),
    "operator admin": operator("root", "admin", null),
    "operator viewer": operator("watch", "viewer", null),
    "operator organization-admin": operator("acme-admin", "organization-admin", acme),
    admin: personCaller(people.ada, "admin", null),
    viewer: personCaller(people.vic, "viewer", null),
    "organization-admin": personCaller(people.lea, "organization-admin", acme),
    "organization-admin elsewhere": personCaller(people.gus, "organization-admin", globex),
    member: personCaller(people.ann, "member", acme),
    "member, a colleague": personCaller(people.bob, "member", acme),
  } satisfies Record<string, Caller>;
}

export const contextFor = (
  db: Database,
  caller: Caller,
  { book, repeatKey = null }: { book?: Parameters<typeof nodeOn>[1]; repeatKey?: string | null } = {},
) => nodeOn(db, book).entrance.contextFor({ caller, address: "192.0.2.1", repeatKey });

/** The verbs as this caller can use them. The check of roles, which comes before a verb is called, is left out. */
export const actingAs = (db: Database, caller: Caller, repeatKey: string | null = null): Management =>
  client(direct(contextFor(db, caller, { repeatKey })));

/** A database object that uses an open transaction. All changes made through it are part of the transaction. */
export const inside = (db: Database, tx: Transaction): Database => ({ ...db, ...tx });
