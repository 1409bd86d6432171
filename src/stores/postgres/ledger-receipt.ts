/** Reads one request of the ledger: the hold of a running one, or the record of an ended one. */
import { and, eq, getTableColumns, ne, sql } from "drizzle-orm";
import { answerNote, apiKey, usageHold, usageRecord } from "../../../db/schema.ts";
import type { Prices } from "../../core/inference/model.ts";
import { noUsage, type RejectedReport, type Usage, type UsageSource } from "../../core/inference/usage.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import {
  type Operation,
  type Outcome,
  type Receipt,
  type WindowKind,
  window_nanos_max,
  windowKinds,
} from "../../core/store/ledger.ts";
import type { Database } from "./database.ts";
import { type LateEntry, lateEntries, tokensWithLate } from "./ledger-late.ts";
import { unwrapErrors, uuidIfAny } from "./rows.ts";

/** The person of the request's key (`personOfKey`). */
type OfPerson = { personId: string | null };
type RecordRow = typeof usageRecord.$inferSelect & OfPerson;
type HoldRow = typeof usageHold.$inferSelect & OfPerson;
type NoteRow = typeof answerNote.$inferSelect & OfPerson;

/** Returns the look-up of a request's receipt, for one organization or for all. */
export function receipts(db: Pick<Database, "drizzle" | "query">) {
  const isIts = (table: typeof usageRecord | typeof usageHold) => eq(table.requestId, sql.placeholder("request"));
  const isOwn = (table: typeof usageRecord | typeof usageHold) =>
    eq(table.organizationId, sql.placeholder("organization"));
  const person = { personId: apiKey.personId };
  const looks = (name: string, whose?: typeof isOwn) => ({
    records: db.drizzle
      .select({ ...getTableColumns(usageRecord), ...person })
      .from(usageRecord)
      .leftJoin(apiKey, eq(apiKey.id, usageRecord.keyId))
      .where(and(isIts(usageRecord), whose?.(usageRecord), ne(usageRecord.operation, "adjustment")))
      .prepare(`record_${name}`),
    holds: db.drizzle
      .select({ ...getTableColumns(usageHold), ...person })
      .from(usageHold)
      .leftJoin(apiKey, eq(apiKey.id, usageHold.keyId))
      .where(and(isIts(usageHold), whose?.(usageHold)))
      .prepare(`hold_${name}`),
  });
  const own = looks("of_organization", isOwn);
  const any = looks("of_any");
  const notes = db.drizzle
    .select({ ...getTableColumns(answerNote), ...person })
    .from(answerNote)
    .leftJoin(apiKey, eq(apiKey.id, answerNote.keyId))
    .where(eq(answerNote.requestId, sql.placeholder("request")))
    .prepare("note_of_any");

  return async (organizationId: string | null, requestId: string): Promise<Receipt | null> => {
    const names = {
      request: bare(requestId, "req_"),
      organization: uuidIfAny(organizationId, "org_"),
    };
    const from = organizationId === null ? any : own;
    const record = async () => (await unwrapErrors(from.records.execute(names))).map(recordReceipt)[0];
    const hold = async () => (await unwrapErrors(from.holds.execute(names))).map(holdReceipt)[0];
    // The request may have been settled between the two look-ups: by now its record exists.
    const found = (await record()) ?? (await hold()) ?? (await record());
    const [note] = await unwrapErrors(notes.execute(names));
    if (found) {
      const late = found.recovered ? (await lateEntries(db, [requestId])).get(requestId) : undefined;
      return { ...(late ? withLate(found, late) : found), detached: note?.detached ?? false };
    }
    return note && (organizationId === null || note.organizationId === names.organization) ? replayReceipt(note) : null;
  };
}

/** The receipt of a request that has no record, because it was answered with another request's answer. */
function replayReceipt(row: NoteRow): Receipt {
  return {
    ...identityOf(row),
    model: row.model!,
    stream: row.stream!,
    createdAt: row.notedAt,
    endedAt: row.notedAt,
    outcome: "completed",
    ...blank,
    replayOf: idOf(row.replayOf!, "req_"),
    usage: noUsage,
    inputs: null,
    searches: 0,
    prices: null,
    nanos: { held: 0, charged: 0, uncharged: 0 },
    source: null,
    windows: null,
  };
}

function recordReceipt(row: RecordRow): Receipt {
  return {
    ...shared(row),
    endedAt: row.endedAt,
    outcome: row.outcome as Outcome,
    stoppedBy: row.stoppedBy,
    errorCode: row.errorCode,
    recovered: row.recovered,
    usage: usageOf(row, row.outputTokens),
    searches: row.searches ?? 0,
    nanos: { held: row.held, charged: row.charged, uncharged: row.uncharged },
    windows: windowsOf(row, (kind) => ({
      usedBefore: row[`${kind}UsedBefore`] ?? 0,
      usedAfter: row[`${kind}UsedAfter`],
    })),
    route:
      row.upstream === null || row.attempts === null
        ? null
        : {
            upstream: row.upstream,
            attempts: row.attempts,
            firstPart_ms: row.firstPart_ms,
            ...(row.tried === null ? {} : { tried: row.tried }),
          },
    reportRejected: row.reportRejected as RejectedReport | null,
  };
}

/**
 * The receipt of a request that was recovered and then settled by its own node: the sums of its record and its late
 * settlement.
 */
function withLate(receipt: Receipt, late: LateEntry): Receipt {
  const { usage, nanos, windows } = receipt;
  const read = (kind: WindowKind) => ({ ...windows![kind], usedAfter: late[`${kind}UsedAfter`] });
  return {
    ...receipt,
    settledLateAt: late.endedAt,
    usage: { ...tokensWithLate(usage, late), source: late.usageSource },
    nanos: { ...nanos, charged: nanos.charged + late.charged, uncharged: nanos.uncharged + late.uncharged },
    windows: windows && { session: read("session"), week: read("week"), month: read("month") },
  };
}

function holdReceipt(row: HoldRow): Receipt {
  return {
    ...shared(row),
    endedAt: null,
    outcome: "running",
    usage: usageOf(row, row.producedTokens),
    searches: 0,
    nanos: { held: row.nanos, charged: 0, uncharged: 0 },
    windows: windowsOf(row, (kind) => ({ usedBefore: row[`${kind}Used`], usedAfter: null })),
  };
}

/** The fields of an ordinary receipt, with nothing special set. */
const blank = {
  stoppedBy: null,
  errorCode: null,
  recovered: false,
  settledLateAt: null,
  detached: false,
  replayOf: null,
  route: null,
  reportRejected: null,
};

function shared(row: RecordRow | HoldRow) {
  return {
    ...blank,
    ...identityOf(row),
    model: row.model,
    stream: row.stream,
    createdAt: row.admittedAt,
    inputs: row.inputCount,
    prices: pricesOf(row),
    source: row.source,
  };
}

function identityOf(row: RecordRow | HoldRow | NoteRow) {
  return {
    requestId: idOf(row.requestId, "req_"),
    organizationId: idOf(row.organizationId, "org_"),
    // Only an operator's entry has no key, and such an entry has no receipt.
    keyId: idOf(row.keyId!, "key_"),
    personId: row.personId && idOf(row.personId, "per_"),
    operation: row.operation as Operation,
  };
}

function pricesOf(row: RecordRow | HoldRow): Prices {
  return {
    input: row.priceInput,
    cachedInput: row.priceCachedInput,
    cacheWrite: row.priceCacheWrite,
    output: row.priceOutput,
    ...(row.priceSearch !== null && { search: row.priceSearch }),
  };
}

function usageOf(row: RecordRow | HoldRow, outputTokens: number): Usage {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, usageSource } = row;
  const source = usageSource as UsageSource;
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, source };
}

/** The limit of a window; null if the stored limit is the most that any window can have, which means no limit. */
function limitOf(nanos: number | null): number | null {
  return nanos === window_nanos_max ? null : nanos;
}

type Uses = (kind: WindowKind) => { usedBefore: number; usedAfter: number | null };

function windowsOf(row: RecordRow | HoldRow, uses: Uses): Receipt["windows"] {
  const windows: Partial<NonNullable<Receipt["windows"]>> = {};
  for (const kind of windowKinds) {
    const startsAt = row[`${kind}StartsAt`];
    const resetAt = row[`${kind}EndsAt`];
    if (startsAt === null || resetAt === null) return null;
    windows[kind] = { startsAt, resetAt, limit: limitOf(row[`${kind}Limit`]), ...uses(kind) };
  }
  return windows as NonNullable<Receipt["windows"]>;
}
