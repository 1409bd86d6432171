/**
 * The Directory over SQL. `credential` runs a prepared statement, which finds all secrets that are asked for in one
 * turn of the event loop by their hashes, through an index.
 */
import { and, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import {
  apiKey,
  keySecret,
  limitValue,
  membership,
  organization,
  person,
  team,
  usageSubject,
} from "../../../db/schema.ts";
import { type Limited, narrowestFirst } from "../../core/store/budget.ts";
import type { Directory, KeyPerson, Scope } from "../../core/store/directory.ts";
import { idOf, uuidOf } from "../../core/store/ids.ts";
import type { RateLimits, RateSubject } from "../../core/store/rates.ts";
import { modelLimitsPrefix, standingSubjects } from "../../features/telemetry/store/standing.ts";
import { batched } from "./batched.ts";
import type { Database } from "./database.ts";
import { secretEnds } from "./key-life.ts";
import { lookUp } from "./look-up.ts";
import { unwrapErrors } from "./rows.ts";

const ofTeam = alias(usageSubject, "of_team");
const ofMember = alias(usageSubject, "of_member");
const byHand = alias(membership, "by_hand");
const byRule = alias(membership, "by_rule");

/**
 * Which secrets the service's port accepts, by the kind of the key. Rows of other prefixes or kinds are ignored.
 * - An ordinary key: secrets with the prefix `slk_`.
 * - A sign-in: access tokens, `slt_`.
 * - A key for identity tokens: access tokens, and its own secret. Nobody can send that secret: no text has its hash.
 */
const isForService = sql`case ${apiKey.kind}
  when 'key' then left(${keySecret.prefix}, 4) = 'slk_'
  when 'sign-in' then left(${keySecret.prefix}, 4) = 'slt_'
  when 'jwt' then left(${keySecret.prefix}, 4) in ('slt_', '')
  else false end`;

export function directory(db: Pick<Database, "drizzle" | "query">): Directory {
  const findWhere = (isAsked: SQL) =>
    db.drizzle
      .select({
        hash: keySecret.hash,
        key: {
          id: apiKey.id,
          name: apiKey.name,
          scopes: apiKey.scopes,
          models: apiKey.models,
          allowFrom: apiKey.allowFrom,
          expiresAt: apiKey.expiresAt,
          revokedAt: apiKey.revokedAt,
          lastUsedAt: apiKey.lastUsedAt,
        },
        secret: { createdAt: keySecret.createdAt, expiresAt: keySecret.expiresAt, revokedAt: keySecret.revokedAt },
        ends: secretEnds,
        organization: {
          id: organization.id,
          slug: organization.slug,
          name: organization.name,
          status: organization.status,
          plan: organization.plan,
          keepsContent: organization.keepsContent,
        },
        ownLimits: organization.ownLimits,
        own: ratesIn(usageSubject),
        member: ratesIn(ofMember),
        team: ratesIn(ofTeam),
        models: ratesForModels,
        raise: {
          requestsPerMinute: raiseOf(organization.id, "requestsPerMinute"),
          tokensPerMinute: raiseOf(organization.id, "tokensPerMinute"),
        },
        kind: apiKey.kind,
        names: { team: team.name, person: person.name },
        person: {
          id: person.id,
          suspendedAt: person.suspendedAt,
          notBefore: person.notBefore,
          confirmedAt: person.confirmedAt,
        },
        hand: membershipIn(byHand),
        rule: membershipIn(byRule),
        readAt: sql<Date>`store_now()`,
      })
      .from(keySecret)
      .innerJoin(apiKey, eq(apiKey.id, keySecret.keyId))
      .innerJoin(organization, eq(organization.id, apiKey.organizationId))
      .leftJoin(usageSubject, eq(usageSubject.subjectId, apiKey.id))
      .leftJoin(ofMember, eq(ofMember.subjectId, usageSubject.memberId))
      .leftJoin(ofTeam, eq(ofTeam.subjectId, usageSubject.teamId))
      .leftJoin(team, eq(team.id, usageSubject.teamId))
      .leftJoin(person, eq(person.id, apiKey.personId))
      .leftJoin(byHand, isOfOwner(byHand, "hand"))
      .leftJoin(byRule, isOfOwner(byRule, "rule"))
      .where(and(isAsked, isForService));
  type Row = Awaited<ReturnType<typeof findWhere>>[number];
  const find = lookUp<Uint8Array, Row>({ name: "credential", column: keySecret.hash, type: "bytea" }, findWhere);
  const look = batched<Uint8Array, Row>(
    (hash) => hash.toHex(),
    async (hashes) => new Map((await find(hashes)).map((row) => [row.hash.toHex(), row])),
  );

  return {
    async credential(keyHash) {
      const row = await unwrapErrors(look(keyHash));
      if (!row) return null;
      const { key, secret, ends, readAt, hand, rule } = row;
      const rights = lastOf(hand, rule);
      return {
        key: { ...key, id: idOf(key.id, "key_") },
        secret,
        ends,
        person: row.person && { ...row.person, id: idOf(row.person.id, "per_"), kind: row.kind, rights },
        organization: { ...row.organization, id: idOf(row.organization.id, "org_") },
        names: row.names,
        overPlan: { own: ownRatesOf(row.ownLimits), raise: row.raise },
        rates: [
          ...ratesOf("key", row.own),
          ...ratesOf("person", row.member),
          ...ratesOf("team", row.team),
          ...(row.models ?? []).map(rateForModels),
        ].sort(narrowestFirst),
        readAt,
      };
    },

    async touch(uses, how) {
      const keys = [...uses].flatMap(([id, from]) => {
        const uuid = uuidOf(id, "key_");
        return uuid === null ? [] : [{ uuid, from }];
      });
      if (keys.length === 0) return;
      await db.query(how === "certain" ? touchingAll : touching, [
        keys.map(({ uuid }) => uuid),
        keys.map(({ from }) => from),
      ]);
    },
  };
}

/** SQL for the memberships of the key's person in the key's organization, whether they have ended or not. */
const isOfOwner = (table: typeof byHand | typeof byRule, source: "hand" | "rule") =>
  and(eq(table.personId, apiKey.personId), eq(table.organizationId, apiKey.organizationId), eq(table.source, source));

const membershipIn = (table: typeof byHand | typeof byRule) => ({
  scopes: table.scopes,
  models: table.models,
  endedAt: table.endedAt,
});

type MembershipRow = { scopes: Scope[] | null; models: string[] | null; endedAt: Date | null } | null;

/**
 * The rights of the membership in force, where one given by hand takes precedence over one given by a rule; or else of
 * the one that ended last.
 */
function lastOf(hand: MembershipRow, rule: MembershipRow): KeyPerson["rights"] {
  const ended_ms = (one: MembershipRow) =>
    one?.scopes ? (one.endedAt?.getTime() ?? Number.POSITIVE_INFINITY) : Number.NEGATIVE_INFINITY;
  const last = ended_ms(rule) > ended_ms(hand) ? rule : hand;
  if (!last?.scopes) return null;
  const { scopes, models, endedAt } = last;
  return { scopes, models, ...(endedAt && { hasEnded: true }) };
}

const ratesIn = (table: typeof usageSubject | typeof ofTeam | typeof ofMember) => ({
  id: table.subjectId,
  requestsPerMinute: raised(table.requestsPerMinute, table.subjectId, "requestsPerMinute"),
  tokensPerMinute: raised(table.tokensPerMinute, table.subjectId, "tokensPerMinute"),
});

type Rate = "requestsPerMinute" | "tokensPerMinute";

/**
 * SQL for the raise (a temporary increase) of this limit that is in force; null if there is none. If the organization
 * has no raises, no row is looked up.
 */
const raiseOf = (subject: SQLWrapper, rate: Rate) =>
  sql<number | null>`case when ${organization.raisedUntil} > store_now() then (
    select ${limitValue[rate]} from ${limitValue}
    where ${limitValue.countedId} = ${subject} and ${limitValue.kind} = 'raise' and ${limitValue.until} > store_now()
  ) end`.mapWith(limitValue[rate]);

const raised = (limit: SQLWrapper, subject: SQLWrapper, rate: Rate) =>
  sql<number | null>`usage_raised(${limit}, ${raiseOf(subject, rate)})`.mapWith(limitValue[rate]);

/** An organization's own limits per minute, which are the last two of `limit_array`. */
function ownRatesOf(ownLimits: (number | null)[] | null): RateLimits {
  return { requestsPerMinute: ownLimits?.[4] ?? null, tokensPerMinute: ownLimits?.[5] ?? null };
}

/**
 * SQL for the rate limits for models that apply to the key: its own, and those of its person, team and organization.
 * Null if the organization has no limits for models.
 */
const ratesForModels = sql<StoredModelRates[] | null>`case when ${organization.hasModels} then (
  select json_agg(json_build_object('id', m.subject_id, 'models', m.models, 'limitedBy', case m.parent_id
      when ${apiKey.id} then 'key' when ${usageSubject.memberId} then 'person' when ${usageSubject.teamId} then 'team'
      else 'organization' end,
    'requestsPerMinute', usage_raised(m.requests_per_minute, r.requests_per_minute),
    'tokensPerMinute', usage_raised(m.tokens_per_minute, r.tokens_per_minute)))
  from usage_subject m
  left join limit_value r on r.counted_id = m.subject_id and r.kind = 'raise' and r.until > store_now()
  where m.parent_id in (${apiKey.id}, ${usageSubject.memberId}, ${usageSubject.teamId}, ${organization.id})
    and coalesce(m.requests_per_minute, m.tokens_per_minute) is not null) end`;

interface StoredModelRates extends Required<Limited>, RateLimits {
  id: string;
}

function rateForModels({ id, limitedBy, models, requestsPerMinute, tokensPerMinute }: StoredModelRates): RateSubject {
  return { limitedBy, models, id: idOf(id, modelLimitsPrefix), limits: { requestsPerMinute, tokensPerMinute } };
}

/** The rate limits of a subject as a list, which is empty if it has none. */
function ratesOf(
  limitedBy: RateSubject["limitedBy"],
  row: { id: string | null; requestsPerMinute: number | null; tokensPerMinute: number | null } | null,
): RateSubject[] {
  if (row === null || row.id === null) return [];
  const { id, requestsPerMinute, tokensPerMinute } = row;
  if (requestsPerMinute === null && tokensPerMinute === null) return [];
  return [{ limitedBy, id: idOf(id, standingSubjects[limitedBy]), limits: { requestsPerMinute, tokensPerMinute } }];
}

const touchingAll = `
  update api_key set last_used_at = store_now(), last_used_from = coalesce(nullif(used.address, ''), last_used_from)
  from (
    select id, given.address from api_key join unnest($1::uuid[], $2::text[]) as given (key_id, address) on id = key_id
    order by id for no key update of api_key
  ) as used
  where api_key.id = used.id`;

/**
 * Several nodes may write the last use of the same key at the same moment. A node skips rows that another node has
 * locked, so no node waits.
 */
const touching = touchingAll.replace("of api_key", "of api_key skip locked");
