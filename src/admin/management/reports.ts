/** Reports of usage over time: docs/reports.md. */
import Type from "typebox";
import { type Currency, moneyOf } from "../../core/inference/money.ts";
import type { Value } from "../../core/schema/codec.ts";
import { memberIdOf } from "../store/limits.ts";
import { type ReportGroup, type ReportMeasures, type ReportRow, reportCounts, reportGroups } from "../store/report.ts";
import { knownZone } from "./calendars.ts";
import { flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { focusGroups, reportFocus } from "./focus.ts";
import { dollars } from "./money.ts";
import { narrowedBy } from "./narrowing.ts";
import * as parse from "./parse.ts";
import { reportCsv } from "./report-csv.ts";
import { Report, type Row } from "./report-shape.ts";
import { reportHelp, reportSaid } from "./report-words.ts";
import { examples, formed, owners, words } from "./shapes.ts";
import { standingsOf } from "./standing.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Usage");

const exampleTotal: Report["total"] = {
  requests: 12,
  inputTokens: 3400,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 900,
  reasoningTokens: 0,
  cost: {
    total: dollars(700_000),
    extraUsage: dollars(0),
    uncharged: dollars(0),
    input: dollars(340_000),
    cachedInput: dollars(0),
    cacheWrite: dollars(0),
    output: dollars(360_000),
  },
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
/** The most rows of a report. They suffice for a thousand keys, three models, and each day of a month. */
const rows_max = 100_000;
/** The most groups that can have rows of their own. A reader could not tell more groups apart in a chart. */
const told_max = 100;
const day_ms = 24 * 3_600_000;

const takes = Type.Object({
  from: Type.Optional(hour("A date, a month (`2026-11`) or a full hour in UTC; else the first of this month.")),
  to: Type.Optional(hour("The moment after the last; else tomorrow.")),
  by: Type.Optional(
    formed(
      new RegExp(`^${group}( *, *${group})*$`),
      `groups with commas between them: ${reportGroups.join(", ")}`,
      "With commas: organization, team, person, key, model, operation, outcome, and one of hour, day, month.",
    ),
  ),
  organization: Type.Optional(words("Slug or ID; else all.")),
  team: Type.Optional(words("Only what was used in this team: its ID, or with `organization` its name.")),
  person: Type.Optional(words("Only what was used with keys and sign-ins of this person, by the ID.")),
  key: Type.Optional(words("Only what was used with this key, by its ID.")),
  model: Type.Optional(words("Only what was used of this model.")),
  zone: Type.Optional(
    words(
      "The time zone of days and months, and of `from` and `to` where they are dates (midnight in UTC is one, too).",
    ),
  ),
  largest: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: rows_max,
      description:
        "Only this many rows, those that cost most. `total` covers all rows, and `rows_left_out` counts the others.",
    }),
  ),
  groups_max: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: told_max,
      description:
        "Rows of their own for only this many groups, those that cost most in all of the period; with a period, all its hours, days or months. All others are one row, or one for each of those, with `others`. Not with `largest`. CSV and FOCUS have all groups.",
    }),
  ),
});

export const reportVerbs = [
  verb({
    name: "reportUsage",
    route: "GET /usage/report",
    summary: "Add up usage in a period",
    description:
      "By any groups; equal to the records, exactly. Running requests are in `running`, and in no row. An `organization-admin` reads that of their own organization.",
    roles: owners,
    faults: ["resource_not_found"],
    takes,
    answers: Report,
    example: {
      takes: {},
      answer: {
        from: examples.at,
        to: examples.at,
        by: ["organization"],
        zone: null,
        organization: null,
        asOf: examples.at,
        total: exampleTotal,
        running: { requests: 0, held: dollars(0) },
        rowsLeftOut: 0,
        organizationId: null,
        currency: "USD",
        provider: "Example AI",
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
      csv: {
        description: "the rows alone.",
        type: csvType,
        filename: "usage.csv",
        asks: ({ groups_max: _, ...taken }) => taken,
        write: reportCsv,
      },
      focus: {
        description: "CSV of FOCUS 1.2, by day unless `by` is hour or month.",
        type: csvType,
        filename: "usage-focus.csv",
        asks: ({ by, groups_max: _, ...taken }) => ({
          ...taken,
          by: focusGroups(by === undefined ? null : String(by)),
        }),
        write: reportFocus,
      },
    },
    command: {
      words: "usage report",
      description: "add up what was used in a span of time, by any groups",
      takes: {
        from: flag("--from <date>", "first moment (default: the first of this month)"),
        to: flag("--to <date>", "moment after the last (default: now)"),
        by: { ...flag("--by <groups>", "groups, comma-separated (default: organization)"), adds: true },
        organization: flag("--org <org>", "slug or ID of the organization (default: all)"),
        team: flag("--team <team>", "only what this team used (its ID, or with --org its name)"),
        person: flag("--person <person>", "only what this person used (the ID)"),
        key: flag("--key <key>", "only what was used with this key (its ID)"),
        model: flag("--model <model>", "only what was used of this model"),
        zone: flag("--zone <zone>", "time zone of dates, days and months (default: UTC)"),
      },
      formats: {
        csv: flag("--csv", "print CSV"),
        focus: flag("--focus", "print CSV in the form of FOCUS 1.2, with costs"),
      },
      says: reportSaid,
      help: reportHelp,
    },
    act: reported,
  }),
] as const;

type ReportInput = Value<typeof takes>;

async function reported(context: ManagementContext, input: ReportInput): Promise<Report> {
  const { catalog, ledger, organizationOf } = context;
  const now = (await ledger.now()).getTime();
  const { zone = null, ...span } = await inZone(context, input);
  const { from, to } = spanOf(span, now);
  const by = groupsOf(input.by);
  const { largest, groups_max, model } = input;
  if (largest !== undefined && groups_max !== undefined) fail("'largest' and 'groups_max' cannot be combined.");
  const { organizationId = null, ...ids } = await narrowedBy(context, input);
  const organization = organizationId === null ? null : await organizationOf(organizationId);
  const found = await ledger.report({
    from,
    to,
    by,
    zone,
    organizationId,
    ...ids,
    model,
    largest,
    groups_max,
    rows_max,
  });
  if (found.rows === null) {
    fail(`The report has more than ${rows_max} rows. Choose a shorter span, fewer groups, or one organization.`);
  }
  const { billing } = await catalog();
  const { currency } = billing;
  const rows = found.rows.toSorted(largestFirst).map((row) => rowShown(row, by, currency));
  return {
    from,
    to,
    by,
    zone,
    organization: organization?.slug ?? null,
    asOf: found.at,
    total: withMeasures({}, found.total!, currency),
    running: { requests: found.running.requests, held: moneyOf(found.running.heldNanos, currency) },
    rowsLeftOut: found.rowsLeftOut,
    organizationId: organization?.id ?? null,
    ...billing,
    rows: await withStanding(
      context,
      { by, isUntilNow: to > found.at, organizationId: organization?.id ?? null },
      rows,
    ),
  };
}

/** The groups whose members have a standing (used share of limits), the narrowest first. */
const subjects = ["key", "person", "team", "organization"] as const satisfies readonly ReportGroup[];
type Subject = (typeof subjects)[number];
const isSubject = (group: ReportGroup): group is Subject => subjects.some((one) => one === group);

interface Counted {
  by: readonly ReportGroup[];
  isUntilNow: boolean;
  /** The only organization in the report; null: the report is not limited to one. */
  organizationId: string | null;
}

/**
 * Adds to each row the standing (used share of limits) of the narrowest subject in it: its key, else its person, team
 * or organization. Adds nothing if the rows are also grouped by anything else.
 */
async function withStanding(
  context: ManagementContext,
  { by, isUntilNow, organizationId }: Counted,
  rows: Row[],
): Promise<Row[]> {
  const subject = subjects.find((one) => by.includes(one));
  if (!isUntilNow || !subject || !by.every(isSubject)) return rows;
  // A person's limits count separately in each organization, so a row without an organization has no standing.
  if (subject === "person" && organizationId === null && !by.includes("organization")) return rows;
  // A `member` sees only the usage of their own limits and keys, and not the usage of a whole team.
  if (context.person !== null && subject !== "key" && subject !== "person") return rows;
  const ids = subject === "person" ? memberIds(organizationId, rows) : rows.map(idOf[subject]);
  const standings = await standingsOf(
    context,
    ids.filter((id) => id != null),
  );
  return rows.map((row, at) => ({ ...row, standing: standings.get(ids[at] ?? "") ?? null }));
}

const idOf: Record<Exclude<Subject, "person">, (row: Row) => string | null | undefined> = {
  key: ({ keyId }) => keyId,
  team: ({ teamId }) => teamId,
  organization: ({ organizationId }) => organizationId,
};

function memberIds(organizationId: string | null, rows: readonly Row[]): (string | null)[] {
  return rows.map((row) => {
    const owner = row.organizationId ?? organizationId;
    return owner && row.personId ? memberIdOf(owner, row.personId) : null;
  });
}

/**
 * Orders rows by period, the latest last; within a period the largest amount first, and equal amounts by the ids of
 * their groups.
 */
function largestFirst(one: ReportRow, other: ReportRow): number {
  const order = (one.startsAt?.getTime() ?? 0) - (other.startsAt?.getTime() ?? 0);
  if (order !== 0) return order;
  if (one.nanos !== other.nanos) return one.nanos < other.nanos ? 1 : -1;
  for (const nameOf of names) {
    const [first, second] = [nameOf(one) ?? "", nameOf(other) ?? ""];
    if (first !== second) return first < second ? -1 : 1;
  }
  return 0;
}

const names: readonly ((row: ReportRow) => string | null | undefined)[] = [
  ({ organization }) => organization?.id,
  ({ team }) => team?.id,
  ({ person }) => person?.id,
  ({ key }) => key?.id,
  ({ model }) => model,
  ({ operation }) => operation,
  ({ outcome }) => outcome,
];

type Span = Pick<ReportInput, "from" | "to" | "zone">;

/** The span of a report in a time zone: dates are days of that zone. */
async function inZone({ administration }: ManagementContext, { from, to, zone }: ReportInput): Promise<Span> {
  const given = { ...(from && { from }), ...(to && { to }) };
  if (zone === undefined) return given;
  const known = await knownZone(administration, zone);
  const dateOf = (at?: Date) => (at && at.getTime() % day_ms === 0 ? at : null);
  const days = await administration.spanIn(known, dateOf(from), dateOf(to));
  const span = {
    from: from && !dateOf(from) ? from : days.from,
    to: to && !dateOf(to) ? to : days.to,
  };
  if (!days.hasFullHours)
    fail(
      `Days in ${known} do not all begin at a full hour in UTC, and usage is added up by such hours. Leave out the zone, or use another.`,
    );
  return { ...span, zone: known };
}

/** The given span; by default, from the first of this month to the end of today (UTC), by the store's clock. */
function spanOf(input: Span, now: number): { from: Date; to: Date } {
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

const periods = ["hour", "day", "month"] as const satisfies readonly ReportGroup[];
const isPeriod = (group: ReportGroup) => periods.some((one) => one === group);

/** The groups in the order given, each once. */
function groupsOf(by = "organization"): ReportGroup[] {
  const groups = [...new Set(by.split(",").map((word) => word.trim() as ReportGroup))];
  const given = periods.filter((period) => groups.includes(period));
  if (given.length > 1) fail(`A report is by one period, not by ${given.join(" and ")}.`);
  return groups;
}

function rowShown(row: ReportRow, by: readonly ReportGroup[], currency: Currency): Row {
  const groups: Partial<Row> = {};
  if (row.isOthers) groups.others = true;
  else if (by.includes("organization")) groups.organizationName = row.organization?.name ?? null;
  for (const group of by) if (!row.isOthers || isPeriod(group)) showGroup[group](groups, row);
  return withMeasures(groups, row, currency);
}

/**
 * For each group, a function that sets the group's members of a row. All set them in the same object: a report can have
 * very many rows, and merging several objects for each row takes several times as long.
 */
const showGroup: Record<ReportGroup, (listed: Partial<Row>, row: ReportRow) => void> = {
  organization(listed, { organization }) {
    listed.organizationId = organization?.id ?? "";
    listed.organization = organization?.slug ?? null;
  },
  team(listed, { team }) {
    listed.teamId = team?.id ?? null;
    listed.team = team?.name ?? null;
  },
  person(listed, { person }) {
    listed.personId = person?.id ?? null;
    listed.person = person?.name ?? null;
  },
  key(listed, { key }) {
    listed.keyId = key?.id ?? null;
    listed.key = key?.name ?? null;
    listed.labels = key?.labels ?? {};
  },
  model(listed, { model }) {
    listed.model = model;
  },
  operation(listed, { operation }) {
    listed.operation = operation;
  },
  outcome(listed, { outcome }) {
    listed.outcome = outcome;
  },
  hour(listed, { startsAt }) {
    listed.hour = startsAt!;
  },
  day(listed, { startsAt }) {
    listed.day = startsAt!.toISOString().slice(0, 10);
  },
  month(listed, { startsAt }) {
    listed.month = startsAt!.toISOString().slice(0, 7);
  },
};

function withMeasures<Groups extends object>(
  groups: Groups,
  row: ReportMeasures,
  currency: Currency,
): Groups & Report["total"] {
  const listed = groups as Groups & Report["total"];
  const total: Pick<ReportMeasures, (typeof reportCounts)[number]> = listed;
  for (const name of reportCounts) total[name] = row[name];
  listed.cost = {
    total: moneyOf(row.nanos, currency),
    extraUsage: moneyOf(row.extraNanos, currency),
    uncharged: moneyOf(row.unchargedNanos, currency),
    input: moneyOf(row.inputNanos, currency),
    cachedInput: moneyOf(row.cachedInputNanos, currency),
    cacheWrite: moneyOf(row.cacheWriteNanos, currency),
    output: moneyOf(row.outputNanos, currency),
  };
  return listed;
}
