/** Sessions of browsers over SQL. */

import { bare, idOf } from "../../core/store/ids.ts";
import type {
  BrowserSession,
  BrowserSessions,
  EndedAtIssuer,
  KnownSession,
  SessionKind,
  SessionLife,
} from "../../features/identity/store/browser-sessions.ts";
import { batched } from "./batched.ts";
import type { Database, Querying } from "./database.ts";

/** A row of `browser_session`. `personId` is a bare UUID. */
type Row = Omit<BrowserSession, "codeHash">;

const columns = (table: string) =>
  `${table}.hash, ${table}.kind, ${table}.person_id as "personId", ${table}.issuer,
   ${table}.issuer_session as "issuerSession", ${table}.tokens`;

const sessionOf = <Found extends Row>(row: Found) => ({ ...row, personId: idOf(row.personId, "per_") });

/**
 * SQL for a session that is not too old. `$1`: the longest time without use. `$2`: the longest time since the sign-in.
 */
export const isYoung = (idle: string, whole: string) =>
  `used_at > store_now() - ${idle}::bigint * interval '1 ms' and created_at > store_now() - ${whole}::bigint * interval '1 ms'`;

/** The least time between two recorded uses. */
const noted_ms = 60_000;

interface Used {
  hash: Uint8Array;
  usedAt: Date;
  readAt: Date;
  idle_ms: number;
}

export async function noteUse(
  db: Querying,
  table: "browser_session" | "operator_session",
  rows: readonly Used[],
): Promise<void> {
  const due = rows.filter(
    ({ usedAt, readAt, idle_ms }) => readAt.getTime() - usedAt.getTime() >= Math.min(noted_ms, idle_ms / 2),
  );
  if (due.length === 0) return;
  await db.query(`update ${table} set used_at = store_now() where hash = any ($1)`, [due.map(({ hash }) => hash)]);
}

interface Lookup extends SessionLife {
  hash: Uint8Array;
  kind: SessionKind;
}

/** Finds the sessions that are not too old and whose person may still use them. */
async function findAll(db: Database, lookups: readonly Lookup[]): Promise<ReadonlyMap<string, KnownSession>> {
  const rows = await db.query<Omit<KnownSession, "personId"> & Row & Used>(
    `select ${columns("s")}, s.created_at as "createdAt", s.used_at as "usedAt", s.confirmed_at as "confirmedAt",
       s.secret_hash as "secretHash", store_now() as "readAt", a.idle as idle_ms
     from unnest($1::bytea[], $2::text[], $3::bigint[], $4::bigint[]) a (hash, kind, idle, whole)
     join browser_session s on s.hash = a.hash and s.kind = a.kind
     join person p on p.id = s.person_id
     where ${isYoung("a.idle", "a.whole").replaceAll(/(used_at|created_at)/g, "s.$1")}
       and p.suspended_at is null and p.forgotten_at is null
       and (p.not_before is null or s.created_at > p.not_before)`,
    [
      lookups.map(({ hash }) => hash),
      lookups.map(({ kind }) => kind),
      lookups.map(({ idle_ms }) => idle_ms),
      lookups.map(({ whole_ms }) => whole_ms),
    ],
  );
  await noteUse(db, "browser_session", rows);
  return new Map(rows.map(({ idle_ms: _, ...row }) => [nameOf(row), sessionOf(row)]));
}

const nameOf = ({ hash, kind }: Pick<Lookup, "hash" | "kind">) => `${kind} ${hash.toHex()}`;

export function browserSessions(db: Database): BrowserSessions {
  const find = batched<Lookup, KnownSession>(nameOf, (lookups) => findAll(db, lookups));
  return {
    async begin({ hash, kind, personId, issuer, issuerSession, tokens, codeHash = null }) {
      // A suspension locks the person's row before it ends the sessions, so no session can begin unnoticed.
      const rows = await db.query(
        `insert into browser_session
           (hash, kind, person_id, issuer, issuer_session, tokens, code_hash, created_at, used_at, confirmed_at)
         select $1::bytea, $2::text, id, $4::text, $5::text, $6::bytea, $7::bytea, store_now(), store_now(), store_now()
         from person where id = $3::uuid and suspended_at is null and forgotten_at is null for share
         returning kind`,
        [hash, kind, bare(personId, "per_"), issuer, issuerSession, tokens, codeHash],
      );
      return rows.length > 0;
    },

    find: (hash, kind, life) => find({ hash, kind, ...life }),

    async redeem({ hash, codeHash, secretHash, young_ms }) {
      const rows = await db.query(
        `update browser_session set code_hash = null, secret_hash = $3
         where hash = $1 and code_hash = $2 and created_at > store_now() - $4::bigint * interval '1 ms' returning kind`,
        [hash, codeHash, secretHash, young_ms],
      );
      return rows.length > 0;
    },

    async claim(hash, confirmedAt, claim_ms) {
      const rows = await db.query(
        `update browser_session set asking_until = store_now() + $2::bigint * interval '1 ms'
         where hash = $1 and date_trunc('milliseconds', confirmed_at) <= $3
           and (asking_until is null or asking_until <= store_now()) returning kind`,
        [hash, claim_ms, confirmedAt],
      );
      return rows.length > 0;
    },

    async confirmed(hash, tokens) {
      await db.query(
        `update browser_session set confirmed_at = store_now(), asking_until = null,
           tokens = case when $2::boolean then $3::bytea else tokens end
         where hash = $1`,
        [hash, tokens !== undefined, tokens ?? null],
      );
    },

    async end(hash) {
      const [row] = await db.query<Row>(`delete from browser_session where hash = $1 returning ${all}`, [hash]);
      return row ? (sessionOf(row) satisfies BrowserSession) : null;
    },

    async endAtIssuer(ended) {
      const { condition, values } = endedBy(ended);
      // A sign-in of a device that was approved in an ended session, but that the device has not fetched yet, ends too.
      await db.query(`delete from device_request d using person p where p.id = d.person_id and ${condition}`, values);
      return (await db.query(`delete from browser_session where ${condition} returning kind`, values)).length;
    },

    async forget({ idle_ms, whole_ms }) {
      const rows = await db.query(
        `delete from browser_session where hash in (
           select hash from browser_session where not (${isYoung("$1", "$2")}) limit 1000) returning kind`,
        [idle_ms, whole_ms],
      );
      return rows.length;
    },
  };
}

const all = columns("browser_session");

/**
 * SQL for the sessions and sign-ins that are to end: those that began with one session at the issuer, or all of one
 * person.
 */
export function endedBy(ended: EndedAtIssuer): { condition: string; values: string[] } {
  return "personId" in ended
    ? { condition: "person_id = $1", values: [bare(ended.personId, "per_")] }
    : { condition: "issuer = $1 and issuer_session = $2", values: [ended.issuer, ended.issuerSession] };
}
