/**
 * What the management interface answers and `--json` prints: the stable formats that scripts read. Only `newKeyJson`,
 * `newOperatorJson` and `setNoticesJson` contain a secret. Pure.
 */

import { percentOf } from "../../inference/amounts.ts";
import type { NewKey } from "../../management/keys.ts";
import type { OwnedHook, SetHook } from "../../management/notices.ts";
import type { NewOperator } from "../../management/operators.ts";
import type { OwnedKey } from "../../management/owned.ts";
import { receiptShown, refusedShown } from "../../management/receipt.ts";
import type {
  FoundRequest,
  OrganizationUsage,
  OwnedDifference,
  UsageAdjustment,
  UsageCheck,
} from "../../management/usage.ts";
import type { Organization, Secret } from "../../store/directory.ts";
import type { Receipt, ReceiptWindow, WindowReading } from "../../store/ledger.ts";
import type { Operator } from "../../store/operators.ts";
import type { KnownPlan } from "../../store/plan.ts";

export function organizationJson(organization: Organization) {
  return {
    id: organization.id,
    slug: organization.slug,
    former_slugs: organization.formerSlugs,
    name: organization.name,
    status: organization.status,
    plan: organization.plan,
    anchor_at: organization.anchorAt,
    next_anchor: organization.nextAnchor && {
      anchor_at: organization.nextAnchor.anchorAt,
      counts_from: organization.nextAnchor.countsFrom,
    },
    extra_usage: { enabled: organization.extraUsage.enabled, cap_units: organization.extraUsage.capUnits },
    key_lifetime_max_days: organization.keyLifetimeMaxDays,
    key_unused_max_days: organization.keyUnusedMaxDays,
    keeps_content: organization.keepsContent,
    created_at: organization.createdAt,
    closed_at: organization.closedAt,
    version: organization.version,
  };
}

export function keyJson({ key, organization }: OwnedKey) {
  return {
    id: key.id,
    organization_id: organization.id,
    organization: organization.slug,
    name: key.name,
    scopes: key.scopes,
    allowed_models: key.allowedModels,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
    last_used_at: key.lastUsedAt,
    last_used_from: key.lastUsedFrom,
    created_by: key.createdBy,
    owner: key.owner,
    labels: key.labels,
    allowed_addresses: key.allowedAddresses,
    state: key.state,
    ends_at: key.endsAt,
    version: key.version,
    secrets: key.secrets.map(secretJson),
  };
}

function secretJson(secret: Secret) {
  return {
    prefix: secret.prefix,
    suffix: secret.suffix,
    created_at: secret.createdAt,
    expires_at: secret.expiresAt,
    revoked_at: secret.revokedAt,
  };
}

export function newKeyJson(made: NewKey) {
  const { id, ...rest } = keyJson(made);
  return { id, key: made.secret || null, ...rest };
}

export function planJson(plan: KnownPlan) {
  return {
    name: plan.name,
    source: plan.source,
    version: plan.version,
    changed_at: plan.changedAt,
    session: plan.session,
    week: plan.week,
    month: plan.month,
    requests_per_minute: plan.requestsPerMinute,
    tokens_per_minute: plan.tokensPerMinute,
    concurrent_requests: plan.concurrentRequests,
  };
}

export function operatorJson(operator: Operator) {
  return {
    id: operator.id,
    name: operator.name,
    role: operator.role,
    organization_id: operator.organizationId,
    created_by: operator.createdBy,
    created_at: operator.createdAt,
    expires_at: operator.expiresAt,
    revoked_at: operator.revokedAt,
    last_used_at: operator.lastUsedAt,
    last_used_from: operator.lastUsedFrom,
    secrets: operator.secrets.map(secretJson),
  };
}

export function newOperatorJson({ operator, secret }: NewOperator) {
  const { id, ...rest } = operatorJson(operator);
  return { id, token: secret || null, ...rest };
}

export function usageJson({ organization, plan, usage }: OrganizationUsage) {
  const { windows, extra, running, at } = usage;
  return {
    organization_id: organization.id,
    organization: organization.slug,
    plan: organization.plan,
    at,
    session: windowJson(windows.session),
    week: windowJson(windows.week),
    month: windowJson(windows.month),
    extra_usage: { enabled: extra.enabled, cap_units: extra.capUnits, used: extra.used, held: extra.held },
    running_requests: running,
    concurrent_requests: plan?.concurrentRequests ?? null,
  };
}

function windowJson({ used, held, limit, startsAt, resetAt }: WindowReading) {
  return { usage_percent: percentOf(used, limit), used, held, limit, starts_at: startsAt, reset_at: resetAt };
}

export function differenceJson({ organization, difference }: OwnedDifference) {
  const { organizationId, subjectId, kind, startsAt, entry = null, used, recorded, held, holding } = difference;
  return {
    organization_id: organizationId,
    organization: organization?.slug ?? null,
    subject_id: subjectId,
    window: kind,
    starts_at: startsAt,
    audit_entry: entry,
    ...{ used, recorded, held, holding },
  };
}

export function checkJson({ differences, trusted, lost }: UsageCheck) {
  const { windows, records, days, dayRecords } = trusted;
  return {
    differences: differences.map(differenceJson),
    trusted: { windows, records, days, day_records: dayRecords },
    lost: { receipts: lost.receipts, units: lost.units, noticed_at: lost.noticedAt, moved_at: lost.movedAt },
  };
}

export function adjustmentJson({ organization, reason, entries }: UsageAdjustment) {
  return {
    organization_id: organization.id,
    organization: organization.slug,
    reason,
    entries: entries.map(({ entryId, kind, added }) => ({
      id: added === null ? null : entryId,
      window: kind,
      units: added,
    })),
  };
}

/** Beside the percentages that the owner reads, the units that they come from. */
function exactWindows({ session, week, month }: NonNullable<Receipt["windows"]>) {
  const exact = ({ startsAt, resetAt, limit, usedBefore, usedAfter }: ReceiptWindow) => ({
    usage_percent_before: percentOf(usedBefore, limit),
    usage_percent_after: usedAfter === null ? null : percentOf(usedAfter, limit),
    starts_at: startsAt,
    reset_at: resetAt,
    limit,
    used_before: usedBefore,
    used_after: usedAfter,
  });
  return { session: exact(session), week: exact(week), month: exact(month) };
}

/** The receipt as its owner can read it, and what only operators see. */
export function requestJson({ organization, receipt, refused }: FoundRequest) {
  const own = receipt ? receiptShown(receipt) : refused ? refusedShown(refused) : null;
  const { route = null, reportRejected = null, createdAt = null, endedAt = null } = receipt ?? {};
  return {
    ...own,
    windows: receipt?.windows ? exactWindows(receipt.windows) : null,
    organization_id: receipt?.organizationId ?? refused?.organizationId ?? null,
    organization: organization?.slug ?? null,
    route: route && {
      upstream: route.upstream,
      attempts: route.attempts,
      first_part_ms: route.firstPart_ms,
      tried: route.tried ?? [],
    },
    report_rejected: reportRejected,
    duration_ms: createdAt && endedAt ? endedAt.getTime() - createdAt.getTime() : null,
  };
}

export function noticesJson({ organization, hook }: OwnedHook) {
  return {
    organization_id: organization.id,
    organization: organization.slug,
    url: hook.url,
    shares: hook.shares,
    key_expiry_days: hook.keyExpiryDays,
    changed_at: hook.changedAt,
    waiting: hook.waiting,
    problem: hook.problem,
  };
}

export function setNoticesJson({ secret, ...owned }: SetHook) {
  return { ...noticesJson(owned), secret };
}
