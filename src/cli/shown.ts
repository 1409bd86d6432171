/** What `--json` prints: the stable forms that scripts read. Never a secret, except where one is made. */
import type { NewKey, OwnedKey } from "../auth/administration.ts";
import type { AuditEntry, Organization } from "../store/directory.ts";
import type { Plan } from "../store/plan.ts";

export function organizationJson(organization: Organization) {
  return {
    id: organization.id,
    slug: organization.slug,
    name: organization.name,
    status: organization.status,
    plan: organization.plan,
    anchor_at: organization.anchorAt,
    extra_usage: { enabled: organization.extraUsage.enabled, cap_units: organization.extraUsage.capUnits },
    created_at: organization.createdAt,
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
    secrets: key.secrets.map((secret) => ({
      prefix: secret.prefix,
      suffix: secret.suffix,
      created_at: secret.createdAt,
      expires_at: secret.expiresAt,
      revoked_at: secret.revokedAt,
    })),
  };
}

/** The one form that holds a key. */
export function newKeyJson(made: NewKey) {
  const { id, ...rest } = keyJson(made);
  return { id, key: made.secret, ...rest };
}

export function planJson(plan: Plan) {
  return {
    name: plan.name,
    session: plan.session,
    week: plan.week,
    month: plan.month,
    requests_per_minute: plan.requestsPerMinute,
    tokens_per_minute: plan.tokensPerMinute,
    concurrent_requests: plan.concurrentRequests,
  };
}

export function auditJson(entry: AuditEntry) {
  return {
    at: entry.at,
    actor: entry.actor,
    action: entry.action,
    organization_id: entry.organizationId,
    subject: entry.subject,
    details: entry.details,
  };
}
