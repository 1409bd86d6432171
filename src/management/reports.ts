/** What an administrator asks about usage over time: docs/reports.md. */
import type { Organization } from "../store/directory.ts";
import {
  type ReportGroup,
  type ReportMeasures,
  type ReportRow,
  reportGroups,
  totalOf,
  type UsageReport,
} from "../store/report.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import type { Pricing } from "./pricing.ts";

export interface ReportVerbs {
  /**
   * What was used from `from` until before `to`: dates, months (`2026-11`), or instants at a full hour, in UTC. Without
   * them: from the first of this month until now, by the store's clock. Without groups: by organization. `by` has at most one period.
   */
  reportUsage(input: {
    from?: string | null;
    to?: string | null;
    /** As a list, or with commas. */
    by?: string[] | string | null;
    organization?: string | null;
  }): Promise<OrganizationReport>;
}

export interface OrganizationReport {
  from: Date;
  to: Date;
  by: ReportGroup[];
  /** Null: of all organizations. */
  organization: Pick<Organization, "id" | "slug"> | null;
  /** The instant of which it tells. */
  at: Date;
  /** The latest period last; within a period the largest first. */
  rows: ReportRow[];
  total: ReportMeasures;
  /** What was admitted in the span and still runs: in no row yet. */
  running: UsageReport["running"];
  /** Null: no price is set. */
  pricing: Pricing | null;
}

/** A day of a thousand keys and three models, for each day of a month. */
const rows_max = 100_000;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

export function reportVerbs({ catalog, ledger, narrowedTo, organizationOf }: ManagementContext): ReportVerbs {
  return {
    async reportUsage(input) {
      const { from, to } = span(input.from, input.to, (await ledger.now()).getTime());
      const by = groupsOf(input.by);
      const one = await narrowedTo(input.organization);
      const organization = one === undefined ? null : await organizationOf(one);
      const found = await ledger.report({ from, to, by, organizationId: organization?.id ?? null, rows_max });
      if (found.rows === null) {
        fail(`The report has more than ${rows_max} rows. Choose a shorter span, fewer groups, or one organization.`);
      }
      const { at, running } = found;
      const rows = found.rows.toSorted(largestFirst);
      const total = totalOf(rows);
      if (!Object.values(total).every(Number.isSafeInteger)) {
        fail("The total is beyond 2^53 - 1 and cannot be told exactly. Choose a shorter span, or one organization.");
      }
      const { pricing = null } = await catalog();
      return {
        from,
        to,
        by,
        organization: organization && only(organization),
        at,
        rows,
        total,
        running,
        pricing,
      };
    },
  };
}

const only = ({ id, slug }: Organization) => ({ id, slug });

function largestFirst(one: ReportRow, other: ReportRow): number {
  return (one.startsAt?.getTime() ?? 0) - (other.startsAt?.getTime() ?? 0) || other.units - one.units;
}

function span(first: unknown, last: unknown, now: number): { from: Date; to: Date } {
  const today = new Date(now - (now % day_ms));
  const from = parse.isAbsent(first)
    ? new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth()))
    : parse.hour(first);
  const to = parse.isAbsent(last) ? new Date(today.getTime() + day_ms) : parse.hour(last);
  if (from.getTime() > now) fail(`The report begins at ${from.toISOString()}, in the future. Nothing was used yet.`);
  if (to <= from) {
    fail(
      `The report ends at ${to.toISOString()} and begins at ${from.toISOString()}. It needs an end after its beginning; the end itself is not part of it.`,
    );
  }
  return { from, to };
}

const periods = ["hour", "day", "month"] as const;

/** In the order given, each once. */
function groupsOf(value: unknown): ReportGroup[] {
  if (parse.isAbsent(value)) return ["organization"];
  const words = [...new Set(parse.list(typeof value === "string" ? value.split(",") : value, "groups"))];
  const wrong = words.find((word) => !reportGroups.includes(word as ReportGroup));
  if (wrong !== undefined) {
    fail(`There is no group '${parse.excerpt(wrong)}'. The groups are: ${reportGroups.join(", ")}.`);
  }
  const given = periods.filter((period) => words.includes(period));
  if (given.length > 1) fail(`A report is by one period, not by ${given.join(" and ")}.`);
  return words as ReportGroup[];
}
