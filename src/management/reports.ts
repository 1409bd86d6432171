/** Reports of usage over time: docs/reports.md. */
import Type from "typebox";
import { type ReportGroup, type ReportMeasures, type ReportRow, reportGroups, totalOf } from "../store/report.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { focusGroups, reportFocus } from "./focus.ts";
import * as parse from "./parse.ts";
import { costOf, type Pricing } from "./pricing.ts";
import { reportCsv } from "./report-csv.ts";
import { Report, type Row } from "./report-shape.ts";
import { examples, formed, owners, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Usage");

const exampleTotal: Report["total"] = {
  requests: 12,
  inputTokens: 3400,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 900,
  reasoningTokens: 0,
  units: 700_000,
  extraUnits: 0,
  unchargedUnits: 0,
  cost: "0.028",
};

const hour = (description: string) =>
  Type.Codec(
    formed(
      new RegExp(`^[0-9]{4}-[0-9]{2}$|${parse.instantForm.source}`),
      "a date, a month such as 2026-11, or an instant with a time zone at a full hour in UTC",
      description,
    ),
  )
    .Decode(parse.hour)
    .Encode((at) => at.toISOString());

const group = `(${reportGroups.join("|")})`;
const csvType = "text/csv; charset=utf-8";
/** The rows for a day of a thousand keys and three models, for each day of a month. */
const rows_max = 100_000;
const day_ms = 24 * 3_600_000;

export const reportVerbs = [
  verb({
    name: "reportUsage",
    route: "GET /usage/report",
    summary: "Add up what was used in a span of time",
    description:
      "By any groups; equal to the records to the unit. What still runs is in `running`, and in no row. An `organization-admin` reads that of the own organization.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
      from: Type.Optional(hour("A date, a month (`2026-11`) or a full hour in UTC; else the first of this month.")),
      to: Type.Optional(hour("The moment after the last; else tomorrow.")),
      by: Type.Optional(
        formed(
          new RegExp(`^${group}( *, *${group})*$`),
          `groups with commas between them: ${reportGroups.join(", ")}`,
          "With commas: organization, team, key, model, operation, outcome, and one of hour, day, month.",
        ),
      ),
      organization: Type.Optional(words("Slug or ID; else all.")),
    }),
    answers: Report,
    example: {
      takes: {},
      answer: {
        from: examples.at,
        to: examples.at,
        by: ["organization"],
        organization: null,
        asOf: examples.at,
        total: exampleTotal,
        running: { requests: 0, heldUnits: 0 },
        organizationId: null,
        price: { currency: "EUR", perMillionUnits: 0.04, provider: "Example AI" },
        rows: [
          {
            organizationName: "Acme, Inc.",
            organizationId: examples.organization,
            organization: "acme",
            ...exampleTotal,
          },
        ],
      },
    },
    formats: {
      csv: { description: "the rows alone.", type: csvType, filename: "usage.csv", write: reportCsv },
      focus: {
        description: "CSV of FOCUS 1.2, by day unless `by` is hour or month.",
        type: csvType,
        filename: "usage-focus.csv",
        asks: ({ by, ...taken }) => ({ ...taken, by: focusGroups(by === undefined ? null : String(by)) }),
        write: reportFocus,
      },
    },
    act: reported,
  }),
] as const;

interface Asked {
  from?: Date;
  to?: Date;
  by?: string;
  organization?: string;
}

async function reported(context: ManagementContext, input: Asked): Promise<Report> {
  const { catalog, ledger, narrowedTo, organizationOf } = context;
  const { from, to } = spanOf(input, (await ledger.now()).getTime());
  const by = groupsOf(input.by);
  const one = await narrowedTo(input.organization);
  const organization = one === undefined ? null : await organizationOf(one);
  const found = await ledger.report({
    ...{ from, to, by, organizationId: organization?.id ?? null, personId: context.person, rows_max },
  });
  if (found.rows === null) {
    fail(`The report has more than ${rows_max} rows. Choose a shorter span, fewer groups, or one organization.`);
  }
  const total = totalOf(found.rows);
  if (!Object.values(total).every(Number.isSafeInteger)) {
    fail("The total is beyond 2^53 - 1 and cannot be told exactly. Choose a shorter span, or one organization.");
  }
  const { pricing = null } = await catalog();
  return {
    from,
    to,
    by,
    organization: organization?.slug ?? null,
    asOf: found.at,
    total: measured(total, pricing),
    running: found.running,
    organizationId: organization?.id ?? null,
    price: pricing && {
      currency: pricing.currency,
      perMillionUnits: pricing.price_per_million_units,
      provider: pricing.provider,
    },
    rows: found.rows.toSorted(largestFirst).map((row) => rowShown(row, by, pricing)),
  };
}

/** The latest period last; within a period the largest first. */
function largestFirst(one: ReportRow, other: ReportRow): number {
  return (one.startsAt?.getTime() ?? 0) - (other.startsAt?.getTime() ?? 0) || other.units - one.units;
}

/** From the first of this month until now, by the store's clock, unless a span is given. */
function spanOf(input: Asked, now: number): { from: Date; to: Date } {
  const today = new Date(now - (now % day_ms));
  const { from = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth())) } = input;
  const { to = new Date(today.getTime() + day_ms) } = input;
  if (from.getTime() > now) fail(`The report begins at ${from.toISOString()}, in the future. Nothing was used yet.`);
  if (to <= from) {
    fail(
      `The report ends at ${to.toISOString()} and begins at ${from.toISOString()}. It needs an end after its beginning; the end itself is not part of it.`,
    );
  }
  return { from, to };
}

const periods = ["hour", "day", "month"] as const;

/** The groups in the order given, each once. */
function groupsOf(by = "organization"): ReportGroup[] {
  const groups = [...new Set(by.split(",").map((word) => word.trim() as ReportGroup))];
  const given = periods.filter((period) => groups.includes(period));
  if (given.length > 1) fail(`A report is by one period, not by ${given.join(" and ")}.`);
  return groups;
}

function rowShown(row: ReportRow, by: readonly ReportGroup[], pricing: Pricing | null): Row {
  const name = by.includes("organization") ? { organizationName: row.organization?.name ?? null } : {};
  const cells = Object.assign({}, ...by.map((group) => cellsOf[group](row)));
  return { ...name, ...cells, ...measured(row, pricing) };
}

const cellsOf: Record<ReportGroup, (row: ReportRow) => Partial<Row>> = {
  organization: ({ organization }) => ({
    organizationId: organization?.id ?? "",
    organization: organization?.slug ?? null,
  }),
  team: ({ team }) => ({ teamId: team?.id ?? null, team: team?.name ?? null }),
  key: ({ key }) => ({ keyId: key?.id ?? null, key: key?.name ?? null, labels: key?.labels ?? {} }),
  model: ({ model }) => ({ model }),
  operation: ({ operation }) => ({ operation }),
  outcome: ({ outcome }) => ({ outcome }),
  hour: ({ startsAt }) => ({ hour: startsAt! }),
  day: ({ startsAt }) => ({ day: startsAt!.toISOString().slice(0, 10) }),
  month: ({ startsAt }) => ({ month: startsAt!.toISOString().slice(0, 7) }),
};

function measured(row: ReportMeasures, pricing: Pricing | null): Report["total"] {
  const { requests, inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = row;
  const { units, extraUnits, unchargedUnits } = row;
  return {
    requests,
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens,
    reasoningTokens,
    units,
    extraUnits,
    unchargedUnits,
    ...(pricing && { cost: costOf(units, pricing) }),
  };
}
