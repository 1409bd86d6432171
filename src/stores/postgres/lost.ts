/** Finds confirmed records that the database no longer has, over SQL. */
import { bare } from "../../core/store/ids.ts";
import type { Confirmed, Look, LostReceipts, RecordedLosses } from "../../features/upkeep/store/lost.ts";
import type { Querying } from "./database.ts";
import { uuidIfAny } from "./rows.ts";

/** The most receipts that one statement looks for. */
const compared_max = 1_000;

export function lostReceipts(db: Querying): LostReceipts {
  return {
    look: (requestId) => look(db, requestId),
    async compare(confirmed, place) {
      const absent: Confirmed[] = [];
      for (let at = 0; at < confirmed.length; at += compared_max) {
        absent.push(...(await absentOf(db, confirmed.slice(at, at + compared_max))));
      }
      const noted = await note(db, absent);
      if (place) await db.query(noteSql, [place.server, place.timeline]);
      return { absent, noted };
    },
  };
}

/** The recorded losses of a year. Nodes write the tables `usage_lost` and `usage_timeline`. */
export async function lostOf(db: Querying): Promise<RecordedLosses> {
  const [row] = await db.query<RecordedLosses>(`
    select count(*) as receipts, coalesce(sum(charged), 0)::bigint as nanos, max(noticed_at) as "noticedAt",
      (select max(t.seen_at) from usage_timeline t having count(*) > 1) as "movedAt"
    from usage_lost where noticed_at > store_now() - interval '12 months'`);
  return row!;
}

async function look(db: Querying, requestId: string | null): Promise<Look> {
  const [row] = await db.query<Look>(lookSql, [uuidIfAny(requestId, "req_")]);
  return row!;
}

/** SQL for a `StoreServer`; null if the server does not tell its timeline. */
const serverOf = (row: string) => `
  case when ${row}.server is not null and ${row}.timeline is not null
    then json_build_object('server', ${row}.server, 'timeline', ${row}.timeline) end`;

const lookSql = `
  select l.ledger_id as "ledgerId", ${serverOf("p")} as place, ${serverOf("was")} as "movedFrom",
    $1::uuid is null or exists (select from usage_record r where r.request_id = $1) as has
  from usage_ledger l
  cross join lateral usage_place() p
  left join lateral (
    select t.server, t.timeline from usage_timeline t
    where not exists (select from usage_timeline k where k.server = p.server and k.timeline = p.timeline)
    order by t.seen_at desc limit 1
  ) was on p.server is not null`;

const noteSql = `insert into usage_timeline values ($1, $2, store_now()) on conflict do nothing`;

async function absentOf(db: Querying, some: readonly Confirmed[]): Promise<Confirmed[]> {
  const rows = await db.query<{ place: number }>(
    `select c.place from unnest($1::uuid[]) with ordinality c (request_id, place)
     where not exists (select from usage_record r where r.request_id = c.request_id)`,
    [some.map(({ requestId }) => bare(requestId, "req_"))],
  );
  return rows.map(({ place }) => some[place - 1]!);
}

async function note(db: Querying, absent: readonly Confirmed[]): Promise<Confirmed[]> {
  if (absent.length === 0) return [];
  const rows = await db.query<{ id: string }>(
    `insert into usage_lost
     select c.*, store_now() from unnest($1::uuid[], $2::uuid[], $3::bigint[]) c
     on conflict do nothing returning request_id as id`,
    [
      absent.map(({ requestId }) => bare(requestId, "req_")),
      absent.map(({ organizationId }) => bare(organizationId, "org_")),
      absent.map(({ charged }) => charged),
    ],
  );
  const noted = new Set(rows.map(({ id }) => id));
  return absent.filter(({ requestId }) => noted.has(bare(requestId, "req_")));
}
