// Other users of the database while requests run: an administrator who changes plans, limits and people, and locks
// tables; upkeep; the audit; reports that hold a snapshot; clients that take every connection; and a change of the
// store's clock. Each uses connections of its own.

import { connect, type Socket } from "node:net";
import type { Administration } from "../../src/admin/store/administration.ts";
import { noBudget } from "../../src/admin/store/budget.ts";
import type { LimitSubject } from "../../src/admin/store/limits.ts";
import { scopes } from "../../src/core/store/directory.ts";
import { idOf } from "../../src/core/store/ids.ts";
import { noLimits, type Plan } from "../../src/core/store/plan.ts";
import { type StandingSubject, standingSubjects } from "../../src/features/telemetry/store/standing.ts";
import { administration } from "../../src/stores/postgres/administration.ts";
import type { Database } from "../../src/stores/postgres/database.ts";
import { DatabaseError } from "../../src/stores/postgres/database-error.ts";
import { adjust, ledger, setAnchor } from "../../src/stores/postgres/ledger.ts";
import { people } from "../../src/stores/postgres/people.ts";
import { plans } from "../../src/stores/postgres/plans.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { newRequestId } from "../core/store/ledger-stores.ts";
import { setRaise } from "../harness/limits.ts";
import type { Chance } from "./chance.ts";
import type { LimitChange, RaiseSet } from "./limits.ts";
import { ask } from "./stores.ts";

/** A plan's new five-hour limit, and the time from which it applies, by this process's clock. */
export interface PlanChange {
  at_ms: number;
  session: number | null;
}

export interface Administrator {
  readonly planChanges: readonly PlanChange[];
  readonly limitChanges: readonly LimitChange[];
  readonly raises: readonly RaiseSet[];
  /**
   * The errors that the store returned although nothing was broken (see `injured`). Such a change by the administrator
   * had no effect, and the run would not show that.
   */
  readonly mistakes: readonly string[];
  /** The most that the store's clock was ever set ahead, in milliseconds. */
  readonly furthest_ms: number;
  changePlan(chance: Chance): Promise<void>;
  /** Sets, lowers, raises or removes the five-hour limit of a random key, person or team. */
  changeLimit(chance: Chance): Promise<void>;
  /**
   * Sets a raise (a temporary increase of a limit) of a random key, person, team or organization that ends within
   * seconds, or ends the subject's current raise.
   */
  raise(chance: Chance): Promise<void>;
  /** Moves a person to another team, or removes them from the organization and brings them back after `away_ms`. */
  movePerson(chance: Chance, away_ms: number): Promise<void>;
  setAnchor(chance: Chance): Promise<void>;
  adjust(chance: Chance): Promise<void>;
  /** Locks a table exclusively, or only reads it in a transaction that stays open. */
  lock(table: string, for_ms: number): Promise<void>;
  readFor(for_ms: number): Promise<void>;
  /**
   * Does upkeep: creates and drops the ledger's partition of a month long ago, creates the partitions of the coming
   * months, and compares the ledger's totals with its records and marks them as checked (seals them).
   */
  keepUp(): Promise<void>;
  exhaustConnections(for_ms: number): Promise<void>;
  setClock(ahead_ms: number): Promise<void>;
}

const longAgo = "019400d0-0000-7000-8000-000000000000";

/**
 * The errors of a database that is killed, full, locked or failed over, by SQLSTATE or its class: no connection, query
 * cancelled or rolled back, no resources, lock not available, shutdown or startup; and two codes of this product for a
 * connection, `unavailable` and `silent`.
 */
const injured = ["08", "25", "40", "53", "55P03", "57", "58", "unavailable", "silent"];
const isInjury = (cause: unknown) =>
  cause instanceof DatabaseError && injured.some((code) => cause.code.startsWith(code));
/**
 * The error that the month's partition exists already. It is ignored: the partition is created only so that upkeep
 * drops it.
 */
const duplicateTable = "42P07";

export function administrator(port: number, firstPlan: Plan): Administrator {
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const planChanges: PlanChange[] = [{ at_ms: Number.NEGATIVE_INFINITY, session: firstPlan.session }];
  let furthest_ms = 0;

  const limitChanges: LimitChange[] = [];
  const raisesSet: RaiseSet[] = [];
  const mistakes: string[] = [];
  /** Ignores errors that an outage of the store explains, and records all others. */
  const forgiven = (cause: unknown) => {
    if (!isInjury(cause)) mistakes.push(String(cause));
  };

  const withDatabase = (work: (db: Database) => Promise<unknown>): Promise<void> =>
    ask(port, work).then(() => {}, forgiven);

  async function withLedger(work: (parts: Book) => Promise<unknown>): Promise<void> {
    try {
      const db = await serverDatabase(url, { connect_ms: 1_000 });
      const book = ledger(db, { recovery: "checkpoint", lanes: 1 });
      try {
        await work({ db, book });
      } finally {
        await book.close();
        await db.close();
      }
    } catch (cause) {
      forgiven(cause);
    }
  }

  const someOrganization = (db: Book["db"]) =>
    db
      .query<{ id: string }>("select id from organization order by random() limit 1")
      .then((rows) => `org_${rows[0]!.id.replaceAll("-", "")}`);

  return {
    planChanges,
    limitChanges,
    raises: raisesSet,
    mistakes,
    get furthest_ms() {
      return furthest_ms;
    },
    changePlan: (chance) =>
      withLedger(async ({ db }) => {
        const session = chance.next() < 0.3 ? firstPlan.session : 200_000 + chance.below(3_000_000);
        const plan: Plan = { ...firstPlan, session };
        // Recorded before the database confirms: the plan may apply from now on, even if the confirmation is lost.
        planChanges.push({ at_ms: Date.now(), session });
        await plans(db).publish([plan, keptPlan], 0);
      }),
    changeLimit: (chance) =>
      withLedger(async ({ db }) => {
        const session = chance.next() < 0.2 ? null : 50_000 + chance.below(2_000_000);
        const rows = await db.query<Subject>(someSubject);
        const { id, kind, person, organization } = rows[0]!;
        const change: LimitChange = { subject: id, at_ms: Date.now(), session, isConfirmed: false };
        limitChanges.push(change);
        const named = kind === "person" ? idOf(person!, "per_") : idOf(id, standingSubjects[kind]);
        const subject = { subject: kind, id: named, organizationId: idOf(organization, "org_") } as LimitSubject;
        change.isConfirmed = await limitSession(administration(db), subject, session);
      }),
    raise: (chance) =>
      withDatabase(async (db) => {
        const [{ id, kind, organization, now_ms }] = (await db.query<Subject & { now_ms: number }>(someRaisable)) as [
          Subject & { now_ms: number },
        ];
        const named = idOf(id, standingSubjects[kind]);
        const subject = { id: named, organizationId: idOf(organization, "org_") };
        const isEnd = chance.next() < 0.2;
        const [session, until_ms] = [200_000 + chance.below(4_000_000), now_ms + 300 + chance.below(6_000)];
        // Recorded before the database confirms: the raise may apply from now on, even if the confirmation is lost.
        if (!isEnd) raisesSet.push({ subject: id, from_ms: Date.now(), until_ms, session });
        const set = isEnd ? null : { limits: { ...noBudget, session }, until: new Date(until_ms) };
        await setRaise(db, subject, set);
      }),
    async movePerson(chance, away_ms) {
      const team = chance.pick(["two", "others", null]);
      const leaves = chance.next() < 0.3;
      const confirm = (comesBack: boolean) =>
        withDatabase(async (db) => {
          const [one] = await db.query<Person>(somePerson);
          const { id, issuer, subject, organization } = one!;
          const membership = { organization, team, role: "member", scopes, models: null } as const;
          const memberships = leaves && !comesBack ? [] : [membership];
          await people(db).confirm({ id: idOf(id, "per_"), issuer, subject, kind: "person", memberships });
        });
      await confirm(false);
      if (!leaves) return;
      await Bun.sleep(away_ms);
      await confirm(true);
    },
    setAnchor: (chance) =>
      withLedger(async ({ db }) => {
        const at = new Date(Date.UTC(2026, chance.below(10), 1 + chance.below(28)));
        await setAnchor(db, await someOrganization(db), at);
      }),
    adjust: (chance) =>
      withLedger(async ({ db }) => {
        const entry = newRequestId();
        const nanos = chance.below(200_000) - 100_000;
        const window = chance.pick(["session", "week", "month", "extra"] as const);
        const organization = await someOrganization(db);
        await adjust(db, entry, organization, window, nanos);
        await adjust(db, entry, organization, window, nanos);
      }),
    lock: (table, for_ms) =>
      withDatabase((db) =>
        db.transaction(async (tx) => {
          await tx.exec(`lock table ${table} in access exclusive mode`);
          await Bun.sleep(for_ms);
        }),
      ),
    readFor: (for_ms) =>
      withDatabase((db) =>
        db.transaction(async (tx) => {
          await tx.exec("set transaction isolation level repeatable read");
          await tx.query("select count(*) from usage_record");
          await tx.query("select count(*) from usage_now");
          await Bun.sleep(for_ms);
          await tx.query("select count(*) from usage_hold");
        }),
      ),
    keepUp: () =>
      withLedger(async ({ db, book }) => {
        await db.query("select usage_partition($1)", [longAgo]).catch((cause: unknown) => {
          if (!(cause instanceof DatabaseError) || cause.code !== duplicateTable) throw cause;
        });
        await Promise.all([book.maintain(), book.audit()]);
        await book.audit();
      }),
    exhaustConnections: (for_ms) =>
      withDatabase(async (db) => {
        const crowd = Array.from({ length: 110 }, () => crowdMember(port));
        try {
          await Bun.sleep(300);
          // Ends the nodes' connections. To reconnect, the nodes have to compete with the crowd of 110 connections.
          await db.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice' and pid <> pg_backend_pid()",
          );
          await Bun.sleep(for_ms);
        } finally {
          for (const socket of crowd) socket.destroy();
        }
      }),
    setClock(ahead_ms) {
      furthest_ms = Math.max(furthest_ms, ahead_ms);
      return withDatabase((db) =>
        db.exec(
          `create or replace function store_now() returns timestamptz language sql volatile parallel safe as
           $$ select date_trunc('milliseconds', clock_timestamp() + interval '${ahead_ms} milliseconds') $$`,
        ),
      );
    },
  };
}

interface Subject {
  id: string;
  kind: StandingSubject;
  organization: string;
  person: string | null;
}

const limitable = `
  select id, 'key' as kind, organization_id as organization, null::uuid as person from api_key
  union all select id, 'team', organization_id, null from team
  union all select distinct usage_member(organization_id, person_id), 'person', organization_id, person_id
    from api_key where person_id is not null`;

/** Selects a random subject that can have limits, of one of three kinds: a key, a team or a person. */
const someSubject = `
  select id, kind, organization, person from (${limitable}) s
  order by random() * case kind when 'key' then 3 else 1 end limit 1`;

/**
 * Selects a random subject whose limits can be raised, of one of four kinds (a key, a team, a person or an
 * organization), and the time by the store's clock.
 */
const someRaisable = `
  select id, kind, organization, (extract(epoch from store_now()) * 1000)::float8 as now_ms
  from (${limitable} union all select id, 'organization', id, null from organization) s
  order by random() * case kind when 'key' then 3 when 'organization' then 3 else 1 end limit 1`;

interface Person {
  id: string;
  issuer: string;
  subject: string;
  organization: string;
}

/** Selects a random person who has keys, with the organization of one of the keys. */
const somePerson = `
  select p.id, p.issuer, p.subject, o.slug as organization
  from api_key k join person p on p.id = k.person_id join organization o on o.id = k.organization_id
  order by random() limit 1`;

const actor = "cli:faults";

/** Sets the session limit of a subject. Returns whether the limit was set. */
async function limitSession(store: Administration, subject: LimitSubject, session: number | null): Promise<boolean> {
  const after = await store.updateLimits(subject, { actor }, ({ own }) => ({ own: { ...own, session } }));
  return after !== null && after !== "closed" && !("stale" in after);
}

/** Opens a connection and sends nothing after its start, so that it only occupies a connection. */
function crowdMember(port: number): Socket {
  const words = Buffer.from("user\0postgres\0database\0postgres\0\0");
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + words.length, 0);
  head.writeInt32BE(196_608, 4);
  const socket = connect(port, "127.0.0.1", () => void socket.write(Buffer.concat([head, words])));
  socket.on("error", () => {});
  socket.resume();
  return socket;
}

interface Book {
  db: Awaited<ReturnType<typeof serverDatabase>>;
  book: ReturnType<typeof ledger>;
}

/** A limit that is never reached. It is set so that each request is counted in Redis. */
export const requests_per_minute = 1_000_000;

/**
 * The plan of the organization whose responses are stored for idempotency keys and background reads. It has no limits.
 */
const keptPlan: Plan = { ...noLimits, name: "kept" };

export const faultsPlan = (session: number | null, concurrentRequests: number | null): Plan => ({
  ...noLimits,
  name: "faults",
  session,
  concurrentRequests,
  requestsPerMinute: requests_per_minute,
});
