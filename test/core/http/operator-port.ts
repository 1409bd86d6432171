/** A node's operator's port over a database of its own, and operators of each role: for tests of the management interface. */

import { client } from "../../../src/admin/management/client.ts";
import { type Management, verbNamed } from "../../../src/admin/management/verbs.ts";
import type { OperatorTls } from "../../../src/config/configuration.ts";
import { unreadBodies, unreadLimits } from "../../../src/core/body/unread.ts";
import { lifecycle } from "../../../src/core/http/frame.ts";
import { listen } from "../../../src/core/http/listen.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { Role } from "../../../src/features/identity/store/operators.ts";
import { administering } from "../../../src/node/administering.ts";
import { type NodeDependencies, operatorApp } from "../../../src/node/app.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { plansNamed } from "../../admin/management/empty-ledger.ts";
import { plentifulBounds } from "../../harness/bounds.ts";
import type { Owned } from "../../stores/postgres/databases.ts";

export interface OperatorPort {
  url: string;
  /** The management interface called within the node's process. */
  manage: Management;
  /** The token of an operator of each role; the `organization-admin` belongs to `acme`. */
  tokens: Record<Role, string>;
  ask(path: string, asked?: Asked): Promise<Answer>;
  post(path: string, body: object, asked?: Asked): Promise<Answer>;
  patch(path: string, body: object, asked?: Asked): Promise<Answer>;
  stop(): Promise<void>;
}

interface Asked {
  method?: string;
  token?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
  /** The version of the object to which the change is made, which goes into `if-match`. */
  version?: number;
}

export interface Answer {
  status: number;
  code: string | undefined;
  body: Record<string, unknown> & { data?: Record<string, unknown>[]; error?: Record<string, unknown> };
  headers: Headers;
}

const served = ["acme/writer-1", "other.1/writer"];
const shown = verbNamed("showConfiguration").example.answer;

/** Starts the port, with the organizations `acme` and `globex`. */
export async function operatorPort({ db }: Owned, options: { tls?: OperatorTls } = {}): Promise<OperatorPort> {
  const book = ledger(db, { recovery: "checkpoint" });
  await plans(db).publish([...plansNamed("starter", "pro").values()], null);
  const { actAs, entrance } = administering(
    {
      database: db,
      ledger: book,
      refused: refusedRequests(db),
      catalog: async () => ({
        plans: new Map((await plans(db).inForce()).map((plan) => [plan.name, plan])),
        models: served,
        upstreams: ["gpu-1"],
        billing: { currency: "USD", provider: "Example AI" },
      }),
      configuration: () => ({ ...shown, models: served.map((id) => ({ ...shown.models[0]!, id })) }),
      server: { operator: { host: "127.0.0.1", port: 0, ...options } } as never,
      limits: { failed_authentications_per_minute: 600 } as never,
      changed() {},
    },
    "1.2.3",
  );
  const listening = listen(operatorApp(nodeDependencies(), entrance), { host: "127.0.0.1", port: 0, idle_ms: 60_000 });
  const manage = client(actAs("cli:test"));
  for (const slug of ["acme", "globex"]) await manage.createOrganization({ slug });
  const token = async (role: Role, organization: string | null = null) =>
    (await manage.createOperator({ name: `a-${role}`, role, organization })).token!;
  const tokens = {
    admin: await token("admin"),
    viewer: await token("viewer"),
    "organization-admin": await token("organization-admin", "acme"),
  };
  const ask: OperatorPort["ask"] = async (path, asked = {}) => {
    const { method = "GET", token = tokens.admin, body, headers = {}, version } = asked;
    const response = await fetch(`${listening.url}/management/v1${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(version === undefined ? {} : { "if-match": `"${version}"` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const read = (await response.json()) as Answer["body"];
    const code = read.error?.code as string | undefined;
    return { status: response.status, code, body: read, headers: response.headers };
  };
  return {
    url: listening.url,
    manage,
    tokens,
    ask,
    post: (path, body, asked = {}) => ask(path, { ...asked, method: "POST", body }),
    patch: (path, body, asked = {}) => ask(path, { ...asked, method: "PATCH", body }),
    async stop() {
      await listening.stop();
      await book.close();
    },
  };
}

/** Makes a person with a membership in this organization alone, and returns the id. */
export async function newPerson({ db }: Owned, name: string, organization: string): Promise<string> {
  const person = await people(db).confirm({
    ...{ id: idOf(Bun.randomUUIDv7(), "per_"), issuer: "https://login.example", subject: name, kind: "person" },
    ...{ email: `${name}@example.com`, isEmailVerified: true, name, groups: ["secret-group"] },
    memberships: [{ organization, team: null, role: "member", scopes, models: null }],
  });
  return person.id;
}

/** The dependencies that every port of a node needs; `more` has those that a test is about. */
export function nodeDependencies(more: Partial<NodeDependencies> = {}, body_bytes_max = 1_000_000): NodeDependencies {
  const needed: Partial<NodeDependencies> = {
    limits: {
      ...{ body_bytes_max, body_depth_max: 100, body_values_max: 100_000, body_members_max: 60_000 },
      ...{ body_names_max: 60_000, body_ratio_max: 100, body_read_ms: 60_000 },
      ...{ first_event_hold_ms: 1_000, heartbeat_ms: 1_000, idle_ms: 60_000 },
    },
    bounds: plentifulBounds(),
    unread: unreadBodies(unreadLimits(100_000)),
    lifecycle: lifecycle(),
    metrics: { decision() {}, unauthenticated() {}, request() {} } as never,
    log: { request() {}, event() {}, flush() {} },
    shedsConnection: () => false,
    newId: () => Bun.randomUUIDv7().replaceAll("-", ""),
    ...more,
  };
  return needed as NodeDependencies;
}
