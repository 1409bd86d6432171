/** A report of usage, as verbs of management return it: docs/reports.md. */
import Type from "typebox";
import { count, Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { reportGroups } from "../store/report.ts";
import { id, instant } from "../store/shapes.ts";
import { standing } from "./standing.ts";

const measures = {
  requests: Type.Integer(),
  input_tokens: Type.Integer(),
  cached_input_tokens: Type.Integer(),
  cache_write_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  reasoning_tokens: Type.Integer({ description: "Of the output tokens." }),
  cost: Type.Object(
    {
      total: Money,
      extra_usage: Money,
      uncharged: Money,
      input: Money,
      cached_input: Money,
      cache_write: Money,
      output: Money,
    },
    {
      $id: "ReportCost",
      description:
        "`total` was charged, entries of operators included; `extra_usage` is a part of it, as are the four kinds of tokens: docs/reports.md. `uncharged` is beside it.",
    },
  ),
};

/**
 * A row has the members of the groups by which the report is grouped. It has `standing`, the used share of limits, if
 * the report's span ends now and its rows are organizations, teams, people or keys.
 */
const Row = Type.Object(
  {
    organization_id: Type.Optional(Type.String()),
    organization: Type.Optional(nullable(Type.String({ description: "Slug. Null: it is gone." }))),
    organization_name: Type.Optional(nullable(Type.String())),
    team_id: Type.Optional(nullable(Type.String({ description: "Null: the key was in no team." }))),
    team: Type.Optional(nullable(Type.String({ description: "Name. Null: no team." }))),
    person_id: Type.Optional(nullable(Type.String({ description: "Null: a service key." }))),
    person: Type.Optional(
      nullable(Type.String({ description: "Name, else e-mail address. Null: a service key, or erased." })),
    ),
    key_id: Type.Optional(nullable(Type.String({ description: "Null: an entry of an operator." }))),
    key: Type.Optional(nullable(Type.String({ description: "Name. Null: the key is gone." }))),
    labels: Type.Optional(Type.Record(Type.String(), Type.String(), { description: "Those that the key has now." })),
    model: Type.Optional(nullable(Type.String())),
    operation: Type.Optional(nullable(Type.String())),
    outcome: Type.Optional(nullable(Type.String())),
    hour: Type.Optional(instant("The beginning of the hour.")),
    day: Type.Optional(Type.String({ description: "In UTC or the zone of the report, such as 2026-11-22." })),
    month: Type.Optional(Type.String({ description: "In UTC or the zone of the report, such as 2026-11." })),
    others: Type.Optional(
      Type.Boolean({ description: "All groups beyond `groups_max`. It names none, but its hour, day or month." }),
    ),
    ...measures,
    standing: Type.Optional(standing()),
  },
  { $id: "UsageReportRow" },
);
export type Row = Value<typeof Row>;
const Total = Type.Object(measures, { $id: "UsageReportTotal" });

export const Report = Type.Object(
  {
    from: instant("The first moment."),
    to: instant("The moment after the last."),
    by: Type.Array(oneOf([...reportGroups])),
    zone: nullable(Type.String({ description: "The time zone of its days and months. Null: UTC." })),
    organization: nullable(Type.String({ description: "Slug. Null: of all organizations." })),
    as_of: instant("The instant of which it tells."),
    total: Total,
    running: Type.Object(
      { requests: count(), held: Money },
      { description: "What was admitted in the span and still runs: in no row yet." },
    ),
    rows_left_out: Type.Integer({ minimum: 0, description: "Rows that are not there, since `largest` was asked for." }),
    organization_id: nullable(id("org")),
    currency: Type.String(),
    provider: Type.String({ description: "The name of the biller." }),
    rows: Type.Array(Row),
  },
  { $id: "UsageReport" },
);
export type Report = Value<typeof Report>;
