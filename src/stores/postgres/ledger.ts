/**
 * The ledger in SQL, the same for Postgres and PGlite: a batch is one call of `usage_batch`, followed on Postgres by
 * one durable commit in the same statement (docs/design/metering.md, Rule 1: One call and one barrier). The connections
 * must be sessions of their own, without a transaction pooler in between.
 */

import { eq, sql } from "drizzle-orm";
import { usageWindowNow } from "../../../db/schema.ts";
import { type Calendar, weekDays } from "../../admin/store/calendar.ts";
import type { LedgerAdministration } from "../../admin/store/ledger.ts";
import { bare } from "../../core/store/ids.ts";
import type {
  Command,
  Ledger,
  LedgerAnswer,
  UsageLimits,
  WindowKind,
  WindowReadings,
} from "../../core/store/ledger.ts";
import { overPlan } from "../../core/store/rates.ts";
import type { Books } from "../../features/upkeep/store/books.ts";
import { storeNow } from "./acts.ts";
import { checkBooks, rollUp, sealed } from "./audit.ts";
import { sumAllEarlier } from "./budgets.ts";
import { answeredWithin, type Database, type Lane, type Querying } from "./database.ts";
import { checkYear } from "./full-check.ts";
import { type BatchAnswers, decodeAnswers, inProportion } from "./ledger-answers.ts";
import { batchCall, durableBatchCall, encodeBatch, inWaves } from "./ledger-batch.ts";
import { settledLate } from "./ledger-late.ts";
import { receipts } from "./ledger-receipt.ts";
import { recoverer } from "./ledger-sweep.ts";
import { lostOf } from "./lost.ts";
import { keepUpPartitions, lacksPartition, makePartitions } from "./partitions.ts";
import { report } from "./report.ts";
import { unwrapErrors } from "./rows.ts";
import { budgetsNow } from "./standing.ts";

interface LedgerSettings {
  /** The charge of a lapsed hold: its last checkpoint, or everything that was held. */
  recovery: "checkpoint" | "hold";
  /** The number of connections for batches, on a server. */
  lanes?: number;
  /** How long a batch may take. After that its connection is given up, and the caller sends it again. */
  answer_ms?: number;
  /** Called with the milliseconds that each batch waited for the locks of its organizations. */
  locked?: (ms: number) => void;
}

/** All that is asked of the ledger: by requests, by the periodic work on it, and by administrators. */
export type Book = Ledger & Books & LedgerAdministration;

export function ledger(db: Database, settings: LedgerSettings): Book {
  const lanes = laneSet(db, settings.lanes ?? 2);
  const call = db.kind === "postgres" ? durableBatchCall : batchCall;
  const answer_ms = settings.answer_ms ?? 5_000;

  async function batch(commands: readonly Command[]): Promise<LedgerAnswer[]> {
    try {
      return await send(commands);
    } catch (error) {
      if (!lacksPartition(error)) throw error;
      await makePartitions(
        db,
        commands.map(({ requestId }) => bare(requestId, "req_")),
      );
      return send(commands);
    }
  }

  async function send(commands: readonly Command[]): Promise<LedgerAnswer[]> {
    const { answers, locks_ms } = await lanes.use((lane) =>
      answeredWithin(batchOn(lane, call, commands), answer_ms, "the ledger"),
    );
    settings.locked?.(locks_ms);
    // Only a settlement that found an existing record may be a late one.
    if (!answers.some(({ answer }) => answer === "already")) return answers;
    return answeredWithin(settledLate(db, commands, answers), answer_ms, "the ledger");
  }

  const find = receipts(db);
  const windowsNow = db.drizzle
    .select()
    .from(usageWindowNow)
    .where(eq(usageWindowNow.organizationId, sql.placeholder("organization")))
    .prepare("windows_now");
  async function now(organizationId: string) {
    const rows = await unwrapErrors(windowsNow.execute({ organization: bare(organizationId, "org_") }));
    if (rows.length === 0) throw new Error(`there is no organization ${organizationId}`);
    return rows;
  }

  return {
    run: (commands) => inWaves(commands, batch),
    recover: recoverer(db, settings.recovery === "hold"),
    async windows(organizationId, limits: UsageLimits) {
      return readingsOf(await now(organizationId), limits);
    },
    budgets: (organizationId, keyId) => budgetsNow(db, organizationId, keyId),
    async reading(organizationId, limits: UsageLimits) {
      const rows = await now(organizationId);
      const { running, ownRequests, raisedRequests, at, extraEnabled: enabled, extraCapNanos: capNanos } = rows[0]!;
      const { used, held } = rows.find((row) => row.kind === "extra")!;
      const concurrentRequests = overPlan(limits.concurrentRequests, ownRequests, raisedRequests);
      const windows = readingsOf(rows, limits);
      return { windows, extra: { enabled, capNanos, used, held }, running, concurrentRequests, at };
    },
    receipt: find,
    receiptOfAny: (requestId) => find(null, requestId),
    rollUp: () => rollUp(db),
    audit: () => checkBooks(db),
    check: (isFull = false) => checkYear(db, isFull),
    sealed: () => sealed(db),
    lost: () => lostOf(db),
    now: () => storeNow(db),
    report: (query) => report(db, query),
    async maintain() {
      const done = await keepUpPartitions(db);
      try {
        await sumAllEarlier(db);
        return done;
      } catch (failure) {
        return { failure, ...done };
      }
    },
    close: () => lanes.close(),
  };
}

/** Calls the ledger once for a batch, in which no request has two commands. */
async function batchOn(lane: Lane, call: string, commands: readonly Command[]): Promise<BatchAnswers> {
  const [row] = await lane.query<{ answers: string }>(call, encodeBatch(commands));
  return decodeAnswers(commands, row!.answers);
}

/** A connection that carries batches. */
interface Slot {
  lane: Promise<Lane> | null;
  running: number;
}

const onServer = { synchronous_commit: "off", plan_cache_mode: "force_generic_plan" };

/**
 * The connections that carry batches: a few of the ledger's own, opened when first needed, and given up when one fails.
 */
function laneSet(db: Database, count: number) {
  const isServer = db.kind === "postgres";
  const slots: Slot[] = Array.from({ length: isServer ? count : 1 }, () => ({ lane: null, running: 0 }));
  const opened = () => db.lane(isServer ? onServer : {});
  const drop = (slot: Slot, lane: Promise<Lane>) => {
    if (slot.lane === lane) slot.lane = null;
    lane.then((one) => one.close()).catch(() => {});
  };

  return {
    async use<T>(work: (lane: Lane) => Promise<T>): Promise<T> {
      const slot = slots.reduce((least, one) => (one.running < least.running ? one : least));
      slot.lane ??= opened();
      const lane = slot.lane;
      slot.running += 1;
      try {
        return await work(await lane);
      } catch (error) {
        // The failed batch may still be running on this connection, so nothing more is sent on it.
        if (isServer) drop(slot, lane);
        throw error;
      } finally {
        slot.running -= 1;
      }
    },
    async close() {
      const open = slots.flatMap((slot) => slot.lane ?? []);
      for (const slot of slots) slot.lane = null;
      await Promise.all(open.map(async (lane) => (await lane).close()));
    },
  };
}

/**
 * Sets an organization's anchor in the ledger, the instant from which weeks and months are counted. It applies from the
 * end of the current month on. Returns that end; null if there is no such organization. `on` may be a transaction that
 * also writes the audit entry.
 */
export async function setAnchor(on: Querying, organizationId: string, anchorAt: Date): Promise<Date | null> {
  const parameters = [bare(organizationId, "org_"), anchorAt];
  const [row] = await on.query<{ at: Date | null }>("select usage_set_anchor($1, $2) as at", parameters);
  return row!.at;
}

/**
 * Sets an organization's calendar in the ledger. Returns the time from which months are counted by that calendar. Null
 * if another change of the calendar is pending.
 */
export async function setCalendar(
  on: Querying,
  organizationId: string,
  calendar: Calendar | null,
): Promise<Date | null> {
  const parameters = [
    bare(organizationId, "org_"),
    calendar?.zone ?? null,
    calendar && weekDays.indexOf(calendar.weekStarts) + 1,
    calendar?.monthStarts ?? null,
  ];
  const [row] = await on.query<{ at: Date | null }>("select usage_set_calendar($1, $2, $3, $4) as at", parameters);
  return row!.at;
}

/**
 * An operator's compensating entry: adds nanos to one current window, or takes some away, down to zero. Returns the
 * amount added; null if there is no such organization, or no session is open. `entryId` has the form of a request id;
 * sent twice, it counts once. `on` may be a transaction that also writes the audit entry.
 */
export async function adjust(
  on: Querying,
  entryId: string,
  organizationId: string,
  kind: WindowKind | "extra",
  nanos: number,
): Promise<number | null> {
  const parameters = [bare(entryId, "req_"), bare(organizationId, "org_"), kind, nanos];
  const [row] = await on.query<{ added: number | null }>("select usage_adjust($1, $2, $3, $4) as added", parameters);
  return row!.added;
}

type WindowNow = typeof usageWindowNow.$inferSelect;

function readingsOf(rows: readonly WindowNow[], limits: UsageLimits): WindowReadings {
  const reading = (kind: WindowKind) => {
    const { startsAt, endsAt: resetAt, used, held, ...over } = rows.find((row) => row.kind === kind)!;
    const { ownNanos, raisedNanos, wholeAt } = over;
    const whole = overPlan(limits[kind], ownNanos, raisedNanos);
    const limit = inProportion(whole, startsAt.getTime(), resetAt.getTime(), wholeAt?.getTime());
    return { kind, limit, used, held, startsAt, resetAt, ...(wholeAt && { isShort: true as const }) };
  };
  return { session: reading("session"), week: reading("week"), month: reading("month") };
}
