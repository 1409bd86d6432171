// Starts a node with a console and an issuer, and creates a company on it: 30 people in four teams with budgets, of
// whom the first is a member and the second administers the company; their keys and the key of a service; and six weeks
// of requests to three models, on two engines, one of which fails now and then.

import { client } from "../../../src/admin/management/client.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { Admit, Settle } from "../../../src/core/store/ledger.ts";
import { adjust, ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { admitOf, settleOf, storeOf } from "../../core/store/ledger-stores.ts";
import { type Chance, chanceOf } from "../../faults/chance.ts";
import { signInByIssuer, signInByToken } from "../../harness/console-session.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { newPerson, nodeOn } from "../management/world.ts";
import { askForMore, type ConsoleNode, pathsOf, type Role } from "./node.ts";

export const models = ["qwen/qwen3-coder", "qwen/qwen3-32b", "meta-llama/llama-3.1-8b-instruct"] as const;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const days = 45;
const firstNames =
  "Ada Ben Cleo Dan Eva Finn Gia Hal Ida Jan Kim Leo Mia Nils Ola Pia Quinn Rosa Sam Tess Uwe Vera Wim Xenia Yan Zoe Anton Berta Carl Dora";
/** The teams, each with its budget for a month in dollars. */
const teamsOf = { platform: "1900", research: "1500", product: "1250", support: "4000" } as const;

interface Employee {
  id: string;
  name: string;
  keyId: string;
  /** The secret text of the key. */
  key: string;
}

export interface Company extends ConsoleNode {
  /** The token of an operator with access to everything. */
  token: string;
  db: Awaited<ReturnType<typeof serverDatabase>>;
  employees: Employee[];
  teams: Record<keyof typeof teamsOf, string>;
  /** Runs a command of the CLI within the test's own process. */
  command(...words: string[]): Promise<unknown>;
  /** Reads from the console's API, as the operator. */
  read<Answer>(path: string): Promise<Answer>;
  close(): Promise<void>;
}

const rules = `
    - { claim: groups, has: acme-platform, organization: acme, team: platform, role: member }
    - { claim: groups, has: acme-research, organization: acme, team: research, role: organization-admin }
`.slice(1);

/**
 * The company for tests: requests start only in every third hour, because recording requests of every hour would take
 * the database seconds.
 */
export const startQuietCompany = () => startCompany(3);

export async function startCompany(step_hours = 1): Promise<Company> {
  const { url: database, drop } = await migratedDatabase();
  const node = await startPeopleNode({ env: { DATABASE_URL: database }, more: rules });
  const { sluice, consoleUrl: url } = node;
  const db = await serverDatabase(database);
  const tokenOf = async (...words: string[]) =>
    (await sluice.json<{ token: string }>("operator", "create", ...words)).token;
  const token = await tokenOf("ann", "--role", "admin");
  const acme = ["acme", "--name", "Acme", "--plan", "unlimited", "--zone", "Europe/Berlin"];
  const { id: organization } = await sluice.json<{ id: string }>("org", "create", ...acme);
  const teams = {} as Company["teams"];
  for (const [name, month] of Object.entries(teamsOf)) {
    const words = ["--org", "acme", "--name", name, "--limit", `month=${month}`];
    teams[name as keyof typeof teamsOf] = (await sluice.json<{ id: string }>("team", "create", ...words)).id;
  }
  // A limit is changed and then set back, so that the audit log has entries of it.
  for (const month of ["2100", teamsOf.platform])
    await sluice.json("limit", "set", "team", "platform", "--org", "acme", `month=${month}`);
  // Calling a verb within this process is faster than running a command, which opens a new database connection.
  const manage = client(nodeOn(db).actAs("cli:test"));
  const employees: Employee[] = [];
  for (const at of firstNames.split(" ").keys()) employees.push(await employee({ ...node, db, manage }, at));
  // A person gets a limit, so that there is one to increase.
  await sluice.json("limit", "set", "person", employees[11]!.id, "--org", "acme", "month=60");
  const agent = await sluice.json<{ id: string }>("key", "create", "--org", "acme", "--name", "nightly build");
  const last = await history(db, organization, [...employees.map(({ keyId }) => keyId), agent.id], step_hours);
  const { manage: manageAsOperator } = await signInByToken(url, token);
  const read = async <Answer>(path: string) => (await manageAsOperator(path)).body as Answer;
  const personOf = async ({ id, name, keyId }: Employee) => {
    const account = accountOf(name);
    const limitRequest = await askForMore(await signInByIssuer(node, account), { limit: "month", of: "team" });
    return { account, id, request: last.get(keyId)!, limitRequest };
  };
  const close = async () => {
    await node[Symbol.asyncDispose]();
    await db.close();
    await drop();
  };
  return {
    ...node,
    url,
    token,
    tokens: {
      admin: token,
      viewer: await tokenOf("vic", "--role", "viewer"),
      "organization-admin": await tokenOf("ola", "--role", "organization-admin", "--org", "acme"),
    },
    organizations: ["acme"],
    people: { member: await personOf(employees[0]!), lead: await personOf(employees[1]!) },
    db,
    employees,
    teams,
    command: (...words) => sluice.json(...words),
    read,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The paths of the pages that a role sees, and of views that look different because of another grouping or filter. */
export async function companyPaths(company: Company, role: Role): Promise<string[]> {
  return [...(await pathsOf(company, role)), ...(views[role] ?? [])];
}

const views: Partial<Record<Role, string[]>> = {
  admin: [
    "/usage?by=person",
    "/usage?by=team&organization=acme",
    "/usage?by=day",
    "/organizations/acme/limits?of=people",
    "/organizations/acme/limits?of=keys",
    "/requests?outcome=failed",
  ],
  lead: ["/usage?by=team"],
};

const accountOf = (name: string) => name.split(" ")[0]!.toLowerCase();

interface Hiring extends Pick<PeopleNode, "provider">, Pick<Company, "db"> {
  manage: Management;
}

/** Creates a person, who can sign in by the issuer, and a key for her. */
async function employee({ provider, db, manage }: Hiring, at: number): Promise<Employee> {
  const name = `${firstNames.split(" ")[at]} Example`;
  const team = Object.keys(teamsOf)[at % 4]!;
  const [account, email] = [accountOf(name), `${accountOf(name)}@example.com`];
  const role = at === 1 ? "organization-admin" : "member";
  const groups = [`acme-${team}`];
  provider.claims.set(account, { name, groups, email, email_verified: true });
  const person = { issuer: provider.issuer, subject: account, name, email, groups };
  const id = await newPerson(db, name, { role, organization: "acme", team }, person);
  const laptop = { organization: "acme", name: `${name.split(" ")[0]}'s laptop`, person: id };
  const { id: keyId, key } = await manage.createKey(laptop);
  return { id, name, keyId, key: key! };
}

/** Records the requests of the past weeks. Returns the ID of each key's last request. */
async function history(
  db: Company["db"],
  organization: string,
  keys: readonly string[],
  step_hours: number,
): Promise<Map<string, string>> {
  const last = new Map<string, string>();
  const chance = chanceOf(7);
  const store = await storeOf(db);
  const book = ledger(db, { recovery: "checkpoint" });
  const end_ms = Date.now();
  const begin_ms = Math.floor((end_ms - days * day_ms) / hour_ms) * hour_ms;
  for (let at_ms = begin_ms; at_ms < end_ms; at_ms += 20 * day_ms)
    await db.query("select usage_partition(usage_record_id($1))", [new Date(at_ms)]);
  for (let at_ms = begin_ms; at_ms < end_ms - 60_000; at_ms += step_hours * hour_ms) {
    const served = hourOf(at_ms, organization, keys, chance);
    if (served.length === 0) continue;
    for (const { admit } of served) last.set(admit.keyId, admit.requestId);
    await store.setClock(new Date(at_ms));
    await book.run(served.map(({ admit }) => admit));
    await store.setClock(new Date(at_ms + 1000 + chance.below(30_000)));
    await book.run(served.map(({ settle }) => settle));
  }
  await store.setClock(null);
  await db.query("select usage_audit_read(1000000)");
  await adjust(db, idOf(Bun.randomUUIDv7(), "req_"), organization, "month", -1_250_000_000);
  await book.close();
  return last;
}

/** An engine's error message for a failed request. */
export const engineText = "CUDA error: device-side assert triggered";

/** Draws the requests of one hour: more by day than by night, few on weekends, and a little more each week. */
function hourOf(at_ms: number, organization: string, keys: readonly string[], chance: Chance) {
  const at = new Date(at_ms);
  const isOff = at.getUTCDay() % 6 === 0 || at.getUTCHours() < 7 || at.getUTCHours() > 17;
  const growth = 1 + (days - (Date.now() - at_ms) / day_ms) / days;
  const count = isOff ? chance.below(3) : Math.round((4 + chance.below(12)) * growth);
  return Array.from({ length: count }, (): { admit: Admit; settle: Settle } => {
    const place = Math.floor(keys.length * chance.next() ** 2);
    const requestId = idOf(Bun.randomUUIDv7(undefined, at_ms + chance.below(60_000)), "req_");
    const model = chance.pick([models[0], models[0], models[1], models[2]]);
    const admit = admitOf(organization, {
      requestId,
      keyId: keys[isOff ? keys.length - 1 - (place % 3) : place]!,
      model,
      inputNanos: 9_000_000_000,
      lease_ms: 100 * hour_ms,
    });
    const nanos = 1 + Math.floor(chance.next() ** 3 * (model === models[0] ? 8_000_000_000 : 1_500_000_000));
    return { admit, settle: settleOf(admit, nanos, endOf(chance)) };
  });
}

function endOf(chance: Chance): Partial<Settle> {
  const upstream = chance.pick(["simulator", "simulator", "spare"]);
  const outcome = chance.below(20) === 0 ? "failed" : chance.below(30) === 0 ? "cancelled" : "completed";
  const isSecond = chance.below(25) === 0;
  const first = { upstream: "spare", outcome: chance.pick(["unreachable", "busy", "timeout"]), ms: 40 };
  const last =
    outcome === "failed"
      ? { upstream, outcome, status: 500, ms: 900, said: engineText }
      : { upstream, outcome: "answered", ms: 900 };
  const tried = isSecond ? [first, last] : outcome === "failed" ? [last] : null;
  const route = {
    upstream,
    attempts: tried?.length ?? 1,
    firstPart_ms:
      outcome === "failed" ? null : 120 + Math.floor(chance.next() ** 4 * 4000) + (upstream === "spare" ? 300 : 0),
    ...(tried && { tried }),
  };
  const usage = {
    inputTokens: chance.below(20_000),
    cachedInputTokens: chance.below(60_000),
    cacheWriteTokens: 0,
    outputTokens: chance.below(3000),
    reasoningTokens: 0,
    source: "reported" as const,
  };
  const errorCode = outcome === "failed" ? chance.pick(["upstream_timeout", "upstream_unavailable"]) : null;
  return { outcome, errorCode, route, usage };
}
