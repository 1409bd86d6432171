/**
 * The common parts of all administrative acts: one transaction with its audit entry, at one instant of the store's
 * clock. An act that changes nothing writes nothing.
 */

import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lt, type SQLWrapper, sql } from "drizzle-orm";
import { administrationRepeat, auditEntry, auditHead } from "../../../db/schema.ts";
import type { AuditHead, AuditQuery, NamedEntry } from "../../admin/store/administration.ts";
import { chainedHash } from "../../admin/store/audit-chain.ts";
import type { Repeat, Repeated } from "../../admin/store/page.ts";
import { masked, maskedDeep } from "../../core/inference/masked.ts";
import { decimalOf, nano_decimals } from "../../core/inference/money.ts";
import { snakeName } from "../../core/schema/codec.ts";
import { idOf, uuidOf } from "../../core/store/ids.ts";
import type { Database, Querying, Transaction } from "./database.ts";
import { unwrapErrors } from "./rows.ts";

export function transact<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return unwrapErrors(db.transaction(work));
}

/** The store's clock: one instant for all rows that an act writes. */
export async function storeNow(tx: Querying): Promise<Date> {
  const [row] = await tx.query<{ at: Date }>("select store_now() as at");
  return row!.at;
}

export interface NewAuditEntry {
  actor: string;
  action: string;
  /** The UUID of the organization concerned; null if there is none. */
  owner: string | null;
  subject: string;
  details: Record<string, unknown>;
}

/**
 * Writes the audit entry, as the last statement of a transaction, because from then until the commit no other act can
 * be recorded. So entries are in the order of their commits, without gaps, however many sessions write.
 */
export async function appendAuditEntry(tx: Transaction, at: Date, act: NewAuditEntry): Promise<void> {
  const { action, owner, subject } = act;
  const [head] = await tx.query<{ number: number; hash: Uint8Array; address: string | null }>(
    `select number, hash, nullif(current_setting('${address_setting}', true), '') as address from audit_head for update`,
  );
  const number = head!.number + 1;
  const { address } = head!;
  const organizationId = owner === null ? null : idOf(owner, "org_");
  // The hash covers the entry as it will be read back, without values that JSON does not keep.
  const [actor, kept] = [masked(act.actor), maskedDeep(act.details)];
  const entry = { number, at, actor, address, action, organizationId, subject, details: kept };
  const hash = Uint8Array.fromHex(chainedHash(head!.hash.toHex(), entry));
  await tx.drizzle
    .insert(auditEntry)
    .values({ number, at, actor, address, action, organizationId: owner, subject, details: kept, hash });
  await tx.drizzle.update(auditHead).set({ number, hash });
}

/**
 * Makes the details of an audit entry from the members of an object, with the names that the audit log and the
 * interfaces use: `snake_case`.
 */
export const detailsOf = (of: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [snakeName(name), value]));

const address_setting = "sluice.address";

/**
 * Returns the same database for acts that are requested from `address`. The audit entries of these acts name the
 * address.
 */
export function withAddress(db: Database, address: string | null): Database {
  if (address === null) return db;
  return {
    ...db,
    transaction: (work, options) =>
      db.transaction(async (tx) => {
        await tx.query(`select set_config('${address_setting}', $1, true)`, [address]);
        return work(tx);
      }, options),
  };
}

/** How long the idempotency key of a request is remembered. */
const repeat_days = 7;

/** An act that creates a thing: who acts, the thing's id, and the idempotency key of the request, if it has one. */
interface Creation {
  actor: string;
  id: string;
  repeat?: Repeat | undefined;
}

/**
 * Runs an act that creates a thing, once for each idempotency key: a repeated request gets the id that the first one
 * recorded. If `create` refuses (by default: returns a text), the key is forgotten, so that the next attempt counts as
 * the first.
 */
export function creating<Made>(
  db: Database,
  { actor, id, repeat }: Creation,
  create: (tx: Transaction) => Promise<Made>,
  isRefusal: (made: Made) => boolean = (made) => typeof made === "string",
): Promise<Made | Repeated> {
  return transact(db, async (tx) => {
    const before = repeat && (await repeated(tx, repeat, actor, id));
    if (before) return before;
    const made = await create(tx);
    if (repeat && isRefusal(made)) await tx.drizzle.delete(administrationRepeat).where(isOf(actor, repeat));
    return made;
  });
}

const isOf = (actor: string, { keyHash }: Repeat) =>
  and(eq(administrationRepeat.actor, actor), eq(administrationRepeat.keyHash, keyHash));

/**
 * Records the id of the thing that a request with an idempotency key creates. Returns null for the first request with
 * this key, else the id that an earlier one recorded. Of two simultaneous requests, the second waits for the first.
 */
async function repeated(tx: Transaction, repeat: Repeat, actor: string, subject: string): Promise<Repeated | null> {
  const { keyHash, requestHash } = repeat;
  await tx.query(`delete from administration_repeat where created_at < store_now() - interval '${repeat_days} days'`);
  const [made] = await tx.drizzle
    .insert(administrationRepeat)
    .values({ actor, keyHash, requestHash, subject, createdAt: await storeNow(tx) })
    .onConflictDoNothing()
    .returning({ subject: administrationRepeat.subject });
  if (made) return null;
  const [before] = await tx.drizzle.select().from(administrationRepeat).where(isOf(actor, repeat));
  return before!.requestHash.toHex() === requestHash.toHex() ? { repeated: before!.subject } : "reused";
}

export async function listAudit(db: Database, query: AuditQuery): Promise<NamedEntry[]> {
  const owner = query.organizationId === undefined ? undefined : uuidOf(query.organizationId, "org_");
  if (owner === null) return [];
  const { actor, action, plan, subject, before, after, limit } = query;
  const wanted = and(
    owner === undefined ? undefined : eq(auditEntry.organizationId, owner),
    actor === undefined ? undefined : eq(auditEntry.actor, actor),
    action === undefined ? undefined : eq(auditEntry.action, action),
    plan === undefined ? undefined : aboutPlan(plan),
    subject === undefined ? undefined : eq(auditEntry.subject, subject),
    before === undefined ? undefined : lt(auditEntry.number, before),
    after === undefined ? undefined : gt(auditEntry.number, after),
  );
  const order = query.order === "oldest" ? asc(auditEntry.number) : desc(auditEntry.number);
  const columns = { ...getTableColumns(auditEntry), ...names };
  const rows = await unwrapErrors(
    db.drizzle.select(columns).from(auditEntry).where(wanted).orderBy(order).limit(limit),
  );
  return rows.map(
    ({ organizationId, hash, ...rest }): NamedEntry => ({
      ...rest,
      organizationId: organizationId && idOf(organizationId, "org_"),
      hash: hash?.toHex() ?? null,
    }),
  );
}

/** SQL for the UUID in an id with the prefix `form`, such as `key`; null for any other text. */
const uuidIn = (column: SQLWrapper, form: string) =>
  sql`case when ${column} ~ ${sql.raw(`'^${form}_[0-9a-f]{32}$'`)} then right(${column}, 32)::uuid end`;

const nameOf = (id: SQLWrapper) => sql<string | null>`coalesce(
  (select k.name from api_key k where k.id = ${uuidIn(id, "key")}),
  (select t.name from team t where t.id = ${uuidIn(id, "team")}),
  (select coalesce(p.name, p.email) from person p where p.id = ${uuidIn(id, "per")}),
  (select o.slug from organization o where o.id = ${uuidIn(id, "org")}),
  (select o.name from operator o where o.id = ${uuidIn(id, "op")}))`;

const { actor, organizationId, subject, details } = auditEntry;
const names = {
  organization: sql<string | null>`(select o.slug from organization o where o.id = ${organizationId})`,
  actorName: sql<
    string | null
  >`(select coalesce(p.name, p.email) from person p where p.id = ${uuidIn(actor, "person:per")})`,
  subjectName: nameOf(subject),
  names: sql<Record<string, string>>`(
    select coalesce(jsonb_object_agg(named.id, named.name) filter (where named.name is not null), '{}')
    from (
      select found.id, ${nameOf(sql`found.id`)} as name
      from (
        select distinct match[1] as id
        from regexp_matches(${details}::text, '((?:key|team|per|org|op)_[0-9a-f]{32})', 'g') match
      ) found
    ) named)`,
};

/**
 * The condition for audit entries about a plan. Plans belong to no organization, so an index finds their entries among
 * the few that have no organization.
 */
const aboutPlan = (name: string) =>
  and(
    isNull(auditEntry.organizationId),
    eq(auditEntry.subject, name),
    inArray(auditEntry.action, ["plan.create", "plan.update", "plan.remove"]),
  );

export async function readAuditHead(db: Database): Promise<AuditHead> {
  const [head] = await unwrapErrors(db.drizzle.select().from(auditHead));
  return { number: head!.number, hash: head!.hash.toHex() };
}

/** An amount in the details of an entry, in the database's currency. */
export function amountWritten(nanos: number | null): string | null {
  return nanos === null ? null : decimalOf(nanos, nano_decimals);
}
