/** Usage as another node answered it, as the verbs' results: records.ts the other way round. Pure. */
import type { OrganizationUsage, UsageAdjustment, UsageCheck } from "../../management/usage.ts";
import type { LedgerDifference, WindowKind, WindowReading } from "../../store/ledger.ts";

type ReadWindow = Pick<WindowReading, "used" | "held" | "limit" | "startsAt" | "resetAt">;

export interface ReadUsage extends Record<WindowKind, ReadWindow> {
  organizationId: string;
  organization: string;
  plan: string | null;
  at: Date;
  extraUsage: OrganizationUsage["usage"]["extra"];
  runningRequests: number;
  concurrentRequests: number | null;
}

export function readUsage(value: ReadUsage): OrganizationUsage {
  const { organizationId, organization, plan, at, extraUsage, runningRequests, concurrentRequests } = value;
  const window = <Kind extends WindowKind>(kind: Kind) => {
    const { used, held, limit, startsAt, resetAt } = value[kind];
    return { kind, used, held, limit, startsAt, resetAt };
  };
  return {
    organization: { id: organizationId, slug: organization, plan },
    plan: { concurrentRequests },
    usage: {
      windows: { session: window("session"), week: window("week"), month: window("month") },
      extra: extraUsage,
      running: runningRequests,
      at,
    },
  };
}

export interface ReadCheck {
  differences: (Omit<LedgerDifference, "kind" | "entry"> & {
    organization: string | null;
    window: LedgerDifference["kind"];
    auditEntry: number | null;
  })[];
  trusted: UsageCheck["trusted"];
  lost: UsageCheck["lost"];
}

export function readCheck({ differences, trusted, lost }: ReadCheck): UsageCheck {
  return {
    differences: differences.map(({ organization, window, auditEntry: entry, ...rest }) => ({
      organization: organization === null ? null : { slug: organization },
      difference: { ...rest, kind: window, entry },
    })),
    trusted,
    lost,
  };
}

export interface ReadAdjustment {
  organizationId: string;
  organization: string;
  reason: string;
  entries: { id: string | null; window: WindowKind | "extra"; units: number | null }[];
}

export function readAdjustment({ organizationId, organization, reason, entries }: ReadAdjustment): UsageAdjustment {
  return {
    organization: { id: organizationId, slug: organization },
    reason,
    entries: entries.map(({ id, window, units }) => ({ entryId: id ?? "", kind: window, added: units })),
  };
}
