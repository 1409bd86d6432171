// Starts a node with a console whose ledger has requests of a hundred days, and computes sums from the records alone.
// The roll-ups contain all records but the newest; some requests are running, some were refused, and there is an
// adjustment by an operator.

import { idOf } from "../../../src/core/store/ids.ts";
import { meteredOperations } from "../../../src/core/store/ledger.ts";
import { adjust, ledger } from "../../../src/stores/postgres/ledger.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { admitOf, settleOf, storeOf } from "../../core/store/ledger-stores.ts";
import type { Chance } from "../../faults/chance.ts";
import { signInByToken } from "../../harness/console-session.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";

export const models = ["acme/writer-1", "acme/painter-1", "acme/seer-2"];
export const upstreams = ["main", "spare"];
export const days = 100;
const hour_ms = 3_600_000;
const requests = 400;

export interface Books {
  url: string;
  /** The token of an operator with access to everything. */
  token: string;
  db: Awaited<ReturnType<typeof serverDatabase>>;
  organizations: Owner[];
  /** Reads from the console's API. */
  read(path: string): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export interface Owner {
  id: string;
  slug: string;
  teams: string[];
  keys: string[];
}

export async function startBooks(chance: Chance): Promise<Books> {
  const { url: database, drop } = await migratedDatabase();
  const port = await freePort();
  const sluice = await startSluice({ env: { DATABASE_URL: database, SLUICE_CONSOLE_PORT: String(port) } });
  const url = `http://127.0.0.1:${port}`;
  const { token } = await sluice.json<{ token: string }>("operator", "create", "ann", "--role", "admin");
  const db = await serverDatabase(database);
  const organizations = await owners(sluice, await interfaceOf(url, token));
  await history(db, organizations, chance);
  return {
    ...{ url, token, db, organizations },
    read: await interfaceOf(url, token),
    async close() {
      await sluice.stop();
      await db.close();
      await drop();
    },
  };
}

type Interface = (path: string, body?: object) => Promise<Record<string, unknown>>;

async function interfaceOf(url: string, token: string): Promise<Interface> {
  const { manage } = await signInByToken(url, token);
  return async (path, sent) => {
    const answer = await manage(path, sent === undefined ? {} : { method: "POST", body: sent });
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body!;
  };
}

async function owners(sluice: Sluice, ask: Interface): Promise<Owner[]> {
  const made: Owner[] = [];
  for (const slug of ["alpha", "beta", "gamma"]) {
    const { id } = await ask("/organizations", { slug, plan: "unlimited" });
    const owner: Owner = { id: String(id), slug, teams: [], keys: [] };
    for (const name of ["research", "sales"])
      owner.teams.push(String((await ask("/teams", { organization: slug, name })).id));
    for (const team of [...owner.teams, null])
      owner.keys.push(
        String((await ask("/keys", { organization: slug, name: "bench", ...(team === null ? {} : { team }) })).id),
      );
    made.push(owner);
  }
  expectDistinct(sluice.organization, made);
  return made;
}

function expectDistinct(first: string, others: readonly Owner[]): void {
  if (others.some(({ slug }) => slug === first)) throw new Error(`two organizations are called ${first}`);
}

async function history(db: Books["db"], organizations: readonly Owner[], chance: Chance): Promise<void> {
  const store = await storeOf(db);
  const book = ledger(db, { recovery: "checkpoint" });
  const end_ms = Date.now();
  const times = Array.from({ length: requests }, () => end_ms - chance.below(days * 24 * hour_ms)).sort();
  const parted = Math.floor(requests * 0.7);
  for (const back of Array.from({ length: days / 10 }, (_, n) => n))
    await db.query("select usage_partition(usage_record_id($1))", [new Date(end_ms - back * 10 * 24 * hour_ms)]);
  for (const [at, time_ms] of times.entries()) {
    await store.setClock(new Date(time_ms));
    await served(book, db, chance, { time_ms, owner: chance.pick(organizations), isLast: at > requests - 8 });
    if (at === parted) await db.query("select usage_audit_read(100000)");
  }
  await store.setClock(null);
  await adjust(db, idOf(Bun.randomUUIDv7(), "req_"), organizations[0]!.id, "month", 12_345);
  await book.close();
}

interface Served {
  time_ms: number;
  owner: Owner;
  isLast: boolean;
}

/** Records a request. The time in its ID is that of a node whose clock is up to five minutes off. */
async function served(
  book: ReturnType<typeof ledger>,
  db: Books["db"],
  chance: Chance,
  { time_ms, owner, isLast }: Served,
): Promise<void> {
  const requestId = idOf(Bun.randomUUIDv7(undefined, time_ms + chance.below(600_000) - 300_000), "req_");
  const facts = {
    requestId,
    keyId: chance.pick(owner.keys),
    model: chance.pick(models),
    operation: chance.pick(meteredOperations),
  };
  if (chance.below(10) === 0) {
    const refusal = {
      organizationId: owner.id,
      stream: true,
      errorCode: "usage_limit_reached",
      age_ms: 0,
      message:
        "This request needs at least $0.31, but the team research has $0.12 left of its $50.00 for this week (99.76% used). It starts anew on Monday 30 November 2026 at 00:00 UTC. Send less input, choose a cheaper model, wait until then, or ask your administrator for a higher limit of the team.",
      limit: {
        limitedBy: "team",
        name: "week",
        limit: 50e9,
        used: 49.88e9,
        held: 0,
        needed: 0.31e9,
        resetAt: new Date(Date.UTC(2026, 10, 30)),
      },
    } as const;
    return refusedRequests(db).keep([{ ...refusal, ...facts }]);
  }
  const admit = admitOf(owner.id, { ...facts, lease_ms: 100 * hour_ms });
  await book.run([admit]);
  if (isLast && chance.below(2) === 0) return;
  const usage = {
    inputTokens: chance.below(300),
    cachedInputTokens: chance.below(50),
    cacheWriteTokens: chance.below(20),
    outputTokens: chance.below(90),
    reasoningTokens: 0,
    source: "reported" as const,
  };
  const outcome = chance.pick(["completed", "completed", "failed", "cancelled"] as const);
  const route = { upstream: chance.pick(upstreams), attempts: 1, firstPart_ms: 12 };
  await book.run([settleOf(admit, 1 + chance.below(1000), { usage, outcome, route })]);
}
