/** Teams and limits as the management interface answers them and `--json` prints them, and back. Pure. */
import type { LimitName } from "../../management/budget-limits.ts";
import type { OrganizationDefault } from "../../management/budgets.ts";
import type { BudgetedKey, OwnedTeam } from "../../management/owned.ts";
import type { Budget, KeyBudget } from "../../store/budget.ts";
import { type ReadKey, readKey } from "./read-key.ts";
import { keyJson } from "./records.ts";

export function limitsJson(budget: Budget) {
  const { session, week, month, requestsPerMinute, tokensPerMinute, concurrentRequests } = budget;
  const json: Record<LimitName, number | null> = {
    session,
    week,
    month,
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
    concurrent_requests: concurrentRequests,
  };
  return json;
}

export function teamJson({ team, organization }: OwnedTeam) {
  return {
    id: team.id,
    organization_id: organization.id,
    organization: organization.slug,
    name: team.name,
    keys: team.keys,
    limits: limitsJson(team.budget),
    key_limits: team.keyDefault && limitsJson(team.keyDefault),
    created_at: team.createdAt,
    version: team.version,
  };
}

export function budgetedKeyJson(key: BudgetedKey) {
  const { team, budget } = key.budget;
  return { ...keyJson(key), team: team && { id: team.id, name: team.name }, limits: limitsJson(budget) };
}

export function keyDefaultJson({ organization, limits }: OrganizationDefault) {
  const { id, slug, version } = organization;
  return { organization_id: id, organization: slug, limits: limits && limitsJson(limits), version };
}

export interface ReadTeam {
  id: string;
  organizationId: string;
  organization: string;
  name: string;
  keys: number;
  limits: Budget;
  keyLimits: Budget | null;
  createdAt: Date;
  version: number;
}

export function readTeam({ organization, limits, keyLimits, ...team }: ReadTeam): OwnedTeam {
  return {
    team: { ...team, budget: limits, keyDefault: keyLimits },
    organization: { id: team.organizationId, slug: organization },
  };
}

export type ReadBudgetedKey = ReadKey & { team: KeyBudget["team"]; limits: Budget };

export function readBudgetedKey({ team, limits, ...key }: ReadBudgetedKey): BudgetedKey {
  return { ...readKey(key), budget: { team, budget: limits } };
}

export interface ReadKeyDefault {
  organizationId: string;
  organization: string;
  limits: Budget | null;
  version: number;
}

export function readKeyDefault({ organizationId, organization, limits, version }: ReadKeyDefault): OrganizationDefault {
  return { organization: { id: organizationId, slug: organization, version }, limits };
}
