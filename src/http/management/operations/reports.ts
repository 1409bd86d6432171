/** What was used over time. An `organization-admin` reads that of the own organization. */
import Type from "typebox";
import { focusGroups, reportFocus } from "../../../management/focus.ts";
import { reportCsv } from "../../../management/report-json.ts";
import { oneOf } from "../../../protocol/shapes/contract.ts";
import { exampleAt, exampleIds } from "../examples.ts";
import { type ManagementOperation, managementOperation, words } from "../operation.ts";
import { type ReadReport, readReport, reportAnswer } from "../report-records.ts";
import { UsageReportRecord } from "../report-shapes.ts";

const csvType = "text/csv; charset=utf-8";
const measures = {
  ...{ requests: 12, input_tokens: 3400, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 900 },
  ...{ reasoning_tokens: 0, units: 700_000, extra_units: 0, uncharged_units: 0, cost: "0.028" },
};

export const reportOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "reportUsage", method: "get", path: "/usage/report", tag: "Usage", kind: "reading" },
    also: ["viewer", "organization-admin"],
    summary: "Add up what was used in a span of time",
    description:
      "By any groups; equal to the records to the unit. What still runs is in `running`, and in no row. An `organization-admin` reads that of the own organization.",
    takes: Type.Object({
      from: Type.Optional(words("A date, a month (`2026-11`) or a full hour in UTC; else the first of this month.")),
      to: Type.Optional(words("The moment after the last; else tomorrow.")),
      by: Type.Optional(
        words("With commas: organization, team, key, model, operation, outcome, and one of hour, day, month."),
      ),
      organization: Type.Optional(words("Slug or ID; else all.")),
      format: Type.Optional({
        ...oneOf(["json", "csv", "focus"]),
        description: "`csv`: the rows alone. `focus`: CSV of FOCUS 1.2, by day unless `by` is hour or month.",
      }),
    }),
    answers: UsageReportRecord,
    example: {
      answer: {
        ...{ from: exampleAt, to: exampleAt, by: ["organization"], organization_id: null, organization: null },
        ...{ as_of: exampleAt, price: { currency: "EUR", per_million_units: 0.04, provider: "Example AI" } },
        rows: [
          {
            ...{ organization_id: exampleIds.organization, organization: "acme", organization_name: "Acme, Inc." },
            ...measures,
          },
        ],
        total: measures,
        running: { requests: 0, held_units: 0 },
      },
    },
    encode: reportAnswer,
    formats: {
      csv: { type: csvType, filename: "usage.csv", write: reportCsv },
      focus: {
        type: csvType,
        filename: "usage-focus.csv",
        asks: ({ by, ...taken }) => ({ ...taken, by: focusGroups(by === undefined ? null : String(by).split(",")) }),
        write: reportFocus,
      },
    },
    read: (value: ReadReport) => readReport(value),
  }),
];
