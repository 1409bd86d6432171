// The stores that keep a ledger, each migrated to the schema of this build, with a clock that a test can set.
import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { migrate } from "../../../db/migrate.ts";
import { noUsage, type Usage } from "../../../src/core/inference/usage.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type {
  Admit,
  AdmitAnswer,
  Checkpoint,
  Grow,
  LedgerAnswer,
  RequestFacts,
  Settle,
  UsageLimits,
} from "../../../src/core/store/ledger.ts";
import { claimCurrency } from "../../../src/stores/postgres/currency.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { type Book, ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { kinds, setClock } from "../../stores/postgres/databases.ts";

export interface Store {
  db: Database;
  /** Connects to the same store as another node would. */
  another(): Promise<Database>;
  /** Sets the store's clock; null lets it run. */
  setClock(at: Date | null): Promise<void>;
  newOrganization(options?: {
    anchorAt?: Date;
    extra?: { enabled: boolean; capNanos: number | null };
  }): Promise<string>;
  close(): Promise<void>;
}

export const stores: Record<"pglite" | "postgres", () => Promise<Store>> = {
  async pglite() {
    const { db, drop } = await kinds[0]!.open();
    return open(db, { another: async () => db, close: drop });
  },
  async postgres() {
    const { url, drop } = await migratedDatabase();
    const databases = [await serverDatabase(url)];
    return open(databases[0]!, {
      async another() {
        const db = await serverDatabase(url);
        databases.push(db);
        return db;
      },
      async close() {
        await Promise.all(databases.map((db) => db.close()));
        await drop();
      },
    });
  },
};

/** The time in which a ledger must answer: in some tests, an embedded database gets a thousand commands at once. */
export const answer_ms = 60_000;

/** A store with its ledger, which closes with the store. */
export async function openLedger(name: keyof typeof stores): Promise<{ store: Store; book: Book }> {
  const store = await stores[name]();
  const book = ledger(store.db, { recovery: "checkpoint", answer_ms });
  const close = () => book.close().finally(store.close);
  return { store: { ...store, close }, book };
}

/**
 * A ledger for a group of tests, opened before them and closed after them. Closing checks that totals equal records,
 * unless `isBalanced` is false. The store and the ledger may be used only while tests run. With `clock`, each test
 * begins at that instant.
 */
export function ledgerForTests(
  name: keyof typeof stores,
  { clock, isBalanced = true }: { clock?: Date; isBalanced?: boolean } = {},
) {
  const [store, book] = [{} as Store, {} as Book];
  beforeAll(async () => {
    const opened = await openLedger(name);
    Object.assign(store, opened.store);
    Object.assign(book, opened.book);
  }, 60_000);
  afterAll(async () => {
    if (isBalanced) await expectBalanced(book);
    await store.close?.();
  }, 30_000);
  if (clock) beforeEach(() => store.setClock(clock));
  return { store, book, ...asking(book) };
}

/** Functions that send a ledger one command at a time. */
export function asking(book: Book) {
  const run = async <Of extends LedgerAnswer>(command: Command) => (await book.run([command]))[0] as Of;
  /** Admits a request and settles it. */
  const serve = async (command: Admit, nanos: number, change: Partial<Settle> = {}) => {
    await run(command);
    return run(settleOf(command, nanos, change));
  };
  return { run, serve, admit: (command: Admit) => run<AdmitAnswer>(command) };
}

type Command = Parameters<Book["run"]>[0][number];

/** Checks that every total equals the sum of its records, by a quick check and a full one. */
export async function expectChecked(book: Book): Promise<void> {
  for (const isFull of [false, true]) expect(await book.check(isFull)).toEqual([]);
}

/** Checks that every total equals the sum of its records, by each kind of check. */
export async function expectBalanced(book: Book): Promise<void> {
  await expectChecked(book);
  expect(await book.audit()).toMatchObject({ differing: 0 });
  expect(await book.check()).toEqual([]);
}

/** The store of an open database, which the caller closes. */
export const storeOf = (db: Database) => open(db, { another: async () => db, close: () => db.close() });

async function open(db: Database, rest: Pick<Store, "another" | "close">): Promise<Store> {
  await migrate(db);
  // Claims the currency as a node does before it serves.
  await claimCurrency(db, "USD");
  await setClock(db, null);
  return {
    db,
    ...rest,
    setClock: (at) => setClock(db, at),
    async newOrganization({ anchorAt = new Date("2026-01-31T10:00:00Z"), extra } = {}) {
      const id = `org_${newHex()}`;
      await db.query(
        `insert into organization (id, slug, name, plan, anchor_at, extra_usage_enabled, extra_usage_cap_nanos)
         values ($1, $2, 'Test', 'test', $3, $4, $5)`,
        [uuidOf(id, "org_"), id.slice(4, 40), anchorAt, extra?.enabled ?? false, extra?.capNanos ?? null],
      );
      return id;
    },
  };
}

/** The instant at which many tests begin; `hours` are counted from it. */
export const noon = new Date("2026-03-10T12:00:00.000Z");
export const hours = (count: number): Date => new Date(noon.getTime() + count * 3_600_000);

export const newHex = (): string => Bun.randomUUIDv7().replaceAll("-", "");
export const newRequestId = (): string => `req_${newHex()}`;
/** A request ID as a node makes it when the node's clock shows this instant. */
export const requestIdAt = (at: Date | string): string =>
  `req_${new Date(at).getTime().toString(16).padStart(12, "0")}${newHex().slice(12)}`;

export const unlimited: UsageLimits = { session: null, week: null, month: null, concurrentRequests: null };

export function factsOf(organizationId: string, requestId = newRequestId()): RequestFacts {
  return {
    requestId,
    organizationId,
    keyId: "key_00000000000070008000000000000001",
    operation: "chat.completions",
    model: "acme/writer-1",
    stream: true,
    prices: { input: 1000, cachedInput: 1000, cacheWrite: 2000, output: 10_000 },
  };
}

/** An admission that holds 100 nanos for its input and 10 for each output token. */
export function admitOf(organizationId: string, change: Partial<Admit> = {}): Admit {
  return {
    verb: "admit",
    ...factsOf(organizationId),
    limits: unlimited,
    inputNanos: 100,
    outputTokens: 90,
    outputTokens_min: 90,
    lease_ms: 60_000,
    ...change,
  };
}

/** A growth of a request's hold to `nanosTotal`, or at least to `nanosTotal_min`. */
export function growOf(
  admit: Admit,
  nanosTotal: number,
  nanosTotal_min = nanosTotal,
  change: Partial<Grow> = {},
): Grow {
  const { requestId, organizationId, limits } = admit;
  return { verb: "grow", requestId, organizationId, number: 1, limits, nanosTotal, nanosTotal_min, ...change };
}

/** The first checkpoint of a request, which extends its lease by a minute. */
export function checkpointOf(
  { requestId, organizationId }: Pick<Admit, "requestId" | "organizationId">,
  usage: Partial<Usage>,
  change: Partial<Checkpoint> = {},
): Checkpoint {
  const known = { requestId, organizationId, number: 1, usage: { ...noUsage, ...usage }, lease_ms: 60_000 };
  return { verb: "checkpoint", ...known, ...change };
}

export function settleOf(
  admit: RequestFacts & { limits: UsageLimits },
  nanos: number,
  change: Partial<Settle> = {},
): Settle {
  const { requestId, organizationId, keyId, operation, model, stream, prices, limits } = admit;
  return {
    verb: "settle",
    ...{ requestId, organizationId, keyId, operation, model, stream, prices, limits },
    usage: { ...noUsage, outputTokens: Math.floor(nanos / 10) },
    nanos,
    outcome: "completed",
    stoppedBy: null,
    errorCode: null,
    route: { upstream: "main", attempts: 1, firstPart_ms: 12 },
    reportRejected: null,
    ...change,
  };
}
