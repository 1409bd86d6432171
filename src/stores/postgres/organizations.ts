/** Administration of organizations. */
import { isDeepStrictEqual } from "node:util";
import { and, eq, gt } from "drizzle-orm";
import { organization } from "../../../db/schema.ts";
import type { Administration } from "../../admin/store/administration.ts";
import type { Calendar } from "../../admin/store/calendar.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { amountWritten, appendAuditEntry, creating, detailsOf, storeNow } from "./acts.ts";
import { change } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { adjust, setAnchor, setCalendar } from "./ledger.ts";
import { planMayStand, planStands } from "./managed-plans.ts";
import { addSuspensionNotice } from "./notices.ts";
import { changeableOrganization, readOrganization, readOrganizations, setOrganization } from "./organization-change.ts";
import { isFormer, orTaken, SlugTaken } from "./organization-life.ts";
import { pageOf } from "./rows.ts";
import { hasUsed } from "./standing.ts";

const calendarDetails = (calendar: Calendar | null) => calendar && detailsOf(calendar);

const spanning = `
  select d."from", d."to", (
    select bool_and(extract(epoch from t at time zone $1::text - t at time zone 'UTC')::bigint % 3600 = 0)
    from (
      select generate_series(d."from", greatest(d."from", d."to"), interval '24 hours') as t union all select d."to"
    ) days
  ) as "hasFullHours"
  from (select store_now() at time zone $1::text) n (today)
  cross join lateral (
    select usage_day($1::text, coalesce($2::timestamptz at time zone 'UTC', date_trunc('month', n.today))) as "from",
      usage_day($1::text, coalesce($3::timestamptz at time zone 'UTC', date_trunc('day', n.today) + interval '1 day')) as "to"
    offset 0
  ) d`;

/**
 * SQL for the spans of time in which the UTC offset of a time zone does not change. The offset is read for each hour.
 */
const zoneRules = `
  select z.zone, min(z.at) as "from", max(z.at) + interval '1 hour' as "to", z.seconds
  from (
    select h.*, row_number() over (partition by h.zone order by h.at)
      - row_number() over (partition by h.zone, h.seconds order by h.at) as run
    from (
      select a.zone, t.at, extract(epoch from t.at at time zone a.zone - t.at at time zone 'UTC')::integer as seconds
      from (
        select distinct a.zone from usage_anchor a join organization o on o.id = a.organization_id
        where a.zone is not null and o.status <> 'closed'
      ) a
      cross join (select date_trunc('hour', store_now(), 'UTC') as began offset 0) n
      cross join lateral generate_series(n.began, n.began + interval '8784 hours', interval '1 hour') t (at)
    ) h
  ) z
  group by z.zone, z.seconds, z.run order by z.zone, 2`;

export function organizations(db: Database, isServed: boolean) {
  const stands = isServed ? planStands : (tx: Transaction, name: string | null) => planMayStand(db, tx, name);
  return {
    async createOrganization(input) {
      const created = creating(db, input, async (tx) => {
        const at = await storeNow(tx);
        if (!(await stands(tx, input.plan))) return "no_plan";
        const { slug, name, plan, calendar, actor } = input;
        const [made] = await tx.drizzle
          .insert(organization)
          .values({ id: bare(input.id, "org_"), slug, name, plan, anchorAt: at, createdAt: at })
          .onConflictDoNothing({ target: organization.slug })
          .returning();
        // The slug is checked after the insertion, which may have waited for a transaction in which another
        // organization gives the slug up.
        if (!made || (await isFormer(tx, made))) throw new SlugTaken();
        if (calendar) await setCalendar(tx, input.id, calendar);
        const details = { slug, name, plan, ...(calendar && { calendar: calendarDetails(calendar) }) };
        await appendAuditEntry(tx, at, {
          actor,
          action: "organization.create",
          owner: made.id,
          subject: input.id,
          details,
        });
        return (await readOrganization(tx, made.id))!;
      });
      return orTaken(created);
    },

    listOrganizations: () => readOrganizations(db, undefined),

    async pageOrganizations({ organizationId, after, limit, status, plan, overPercent: over }) {
      const beyond = after === undefined ? undefined : gt(organization.id, uuidOf(after, "org_") ?? uuid_max);
      const wanted = and(
        beyond,
        organizationId === undefined ? undefined : eq(organization.id, bare(organizationId, "org_")),
        status === undefined ? undefined : eq(organization.status, status),
        plan === undefined ? undefined : eq(organization.plan, plan),
        over === undefined ? undefined : hasUsed("organization", organization.id, over),
      );
      return pageOf(await readOrganizations(db, wanted, limit + 1), limit);
    },

    async findOrganization(slugOrId) {
      const id = uuidOf(slugOrId, "org_");
      const wanted = id === null ? eq(organization.slug, slugOrId) : eq(organization.id, id);
      return (await readOrganizations(db, wanted))[0] ?? null;
    },

    setOrganizationStatus: (id, status, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        if (row.status === status) return null;
        await setOrganization(tx, row, { status });
        if (status === "suspended") await addSuspensionNotice(tx, row.id, row.version + 1);
        return {
          action: status === "active" ? "organization.resume" : "organization.suspend",
          details: { status, before: row.status },
        };
      }),

    setOrganizationPlan: (id, plan, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        if (row.plan === plan) return null;
        if (!(await stands(tx, plan))) return "no_plan";
        await setOrganization(tx, row, { plan });
        return { action: "organization.plan", details: { plan, before: row.plan } };
      }),

    setOrganizationAnchor: (id, anchorAt, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const before = (await readOrganization(tx, row.id))!;
        if (before.calendar || before.nextCalendar?.calendar) return "has_calendar";
        if ((before.nextAnchor ?? before).anchorAt.getTime() === anchorAt.getTime()) return null;
        const countsFrom = await setAnchor(tx, id, anchorAt);
        const details = { anchor_at: anchorAt, counts_from: countsFrom, before: before.anchorAt };
        return { action: "organization.anchor", details };
      }),

    setOrganizationCalendar: (id, calendarAfter, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const before = (await readOrganization(tx, row.id))!;
        const last = (before.nextCalendar ?? before).calendar;
        const calendar = calendarAfter(last);
        if (isDeepStrictEqual(last, calendar)) return null;
        const countsFrom = await setCalendar(tx, id, calendar);
        if (countsFrom === null) return "calendar_changes";
        const details = { calendar: calendarDetails(calendar), counts_from: countsFrom };
        return {
          action: "organization.calendar",
          details: { ...details, before: calendarDetails(before.calendar) },
        };
      }),

    async knownZone(name) {
      const [row] = await db.query<{ name: string }>(
        "select name from pg_timezone_names where lower(name) = lower($1) order by name limit 1",
        [name],
      );
      return row?.name ?? null;
    },

    async zones() {
      const rows = await db.query<{ zone: string; from: Date; to: Date; seconds: number }>(zoneRules);
      return [...Map.groupBy(rows, ({ zone }) => zone)].map(([zone, offsets]) => ({
        zone,
        offsets: offsets.map(({ from, to, seconds }) => ({ from, to, seconds })),
      }));
    },

    async spanIn(zone, first, end) {
      const [span] = await db.query<{ from: Date; to: Date; hasFullHours: boolean }>(spanning, [zone, first, end]);
      return span!;
    },

    setExtraUsage: (id, extra, actor, version) =>
      change(db, changeableOrganization, { id, actor, version }, async (tx, row) => {
        const capNanos = extra.enabled ? extra.capNanos : row.extraUsageCapNanos;
        if (row.extraUsageEnabled === extra.enabled && row.extraUsageCapNanos === capNanos) return null;
        await setOrganization(tx, row, { extraUsageEnabled: extra.enabled, extraUsageCapNanos: capNanos });
        await tx.query("select usage_limits_changed(array[$1::uuid])", [row.id]);
        const before = { enabled: row.extraUsageEnabled, cap: amountWritten(row.extraUsageCapNanos) };
        const details = { enabled: extra.enabled, cap: amountWritten(capNanos), before };
        return { action: "organization.extra_usage", details };
      }),

    adjustUsage({ organizationId, entries, nanos, reason, actor, repeat }) {
      const adjusted = async (tx: Transaction) => {
        const owner = bare(organizationId, "org_");
        const done = [];
        for (const { entryId, kind } of entries) {
          done.push({ entryId, kind, added: await adjust(tx, entryId, organizationId, kind, nanos) });
        }
        for (const { entryId, kind, added } of done) {
          if (added === null) continue;
          const details = { window: kind, amount: amountWritten(nanos), added: amountWritten(added), reason };
          await appendAuditEntry(tx, await storeNow(tx), {
            actor,
            action: "usage.adjust",
            owner,
            subject: entryId,
            details,
          });
        }
        return done;
      };
      const id = entries.map(({ entryId }) => entryId).join(" ");
      return creating(db, { actor, id, repeat }, adjusted, (done) => done.every(({ added }) => added === null));
    },
  } satisfies Partial<Administration>;
}
