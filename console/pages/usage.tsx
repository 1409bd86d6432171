/** Who used what: any report as a chart and as a table, down to the requests that it adds up. */

import { useState } from "preact/hooks";
import { query, replaceQuery, withQuery } from "../core/address.ts";
import { announce } from "../core/announce.ts";
import { type Answer, download } from "../core/client.ts";
import { compacted, grouped } from "../core/format.ts";
import { exactly, figureOf, moneyWritten } from "../core/money.ts";
import { membership } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "../parts/asked.tsx";
import { Chart } from "../parts/chart.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { ReportTable } from "../parts/report-table.tsx";
import { Empty, Page, Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";

export type Report = Answer<"reportUsage">;
export type ReportRow = Report["rows"][number];

/** The rows that are shown at first, and those that can be. The files to save have all. */
const rows_min = 50;
const rows_max = 1000;
const groups = Object.keys({
  organization: true,
  team: true,
  person: true,
  key: true,
  model: true,
  operation: true,
  outcome: true,
  day: true,
  month: true,
} satisfies Record<Exclude<Report["by"][number], "hour">, true>);
const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "all" },
  { name: "by", label: "Add up by", choices: groups, fallback: "organization" },
  { name: "from", label: "From", hint: "this month" },
  { name: "to", label: "Before", hint: "tomorrow" },
];

export function UsagePage() {
  const offered = membership.value ? filters.slice(1) : filters;
  const { by = "organization", ...chosen } = filtersSet(offered);
  const input = { ...chosen, by };
  // Days and months are few; of anything else there may be thousands.
  const isTime = by === "day" || by === "month";
  const largest = Number(query.value.get("rows")) || rows_min;
  const asked = useAnswer("reportUsage", isTime ? input : { ...input, largest });
  const days = useAnswer("reportUsage", { ...chosen, by: "day" });
  return (
    <Page
      title="Usage"
      aside={
        asked.answer && (
          <>
            <span>
              <Span from={asked.answer.from} to={asked.answer.to} />, as of <Time at={asked.answer.as_of} />
            </span>
            <Downloads input={input} />
          </>
        )
      }
    >
      <Filters of={offered} />
      <Months />
      <Show of={asked}>{(report) => <Totals report={report} />}</Show>
      <Section title="Cost by day" aside="in UTC, as the ledger has its days">
        <Show of={days}>{(report) => <Days report={report} />}</Show>
      </Section>
      <Section title={`By ${by}`}>
        <Show of={asked}>
          {(report) =>
            report.rows.length === 0 ? (
              <Empty>Nothing was used in this span. A request counts when it has ended.</Empty>
            ) : (
              <>
                <ReportTable report={report} by={by} />
                {report.rows_left_out > 0 && largest < rows_max && (
                  <nav class="pages" aria-label="Rows of the report">
                    <a href={withQuery({ rows: String(Math.min(rows_max, largest * 2)) })}>More rows</a>
                  </nav>
                )}
                <p class="fine sum">
                  Entries of operators are in the sums, and are no requests:{" "}
                  <a href={withQuery({ by: "operation" })}>by operation</a> they have a row.
                </p>
              </>
            )
          }
        </Show>
      </Section>
      <CommandLine text={commandOf(input)} />
    </Page>
  );
}

/** Whole days of the ledger are named as such; in the reader's zone they would begin at some hour of the night. */
function Span({ from, to }: { from: string; to: string }) {
  const last = daysBetween(from, to).at(-1)!;
  const areDays = [from, to].every((at) => Date.parse(at) % 86_400_000 === 0);
  if (!areDays) {
    return (
      <>
        <Time at={from} /> to <Time at={to} />
      </>
    );
  }
  return (
    <span title={`${from} to ${to}`}>
      {from.slice(0, 10)}
      {last !== from.slice(0, 10) && ` to ${last}`} (UTC)
    </span>
  );
}

/** The command is of its own making, so no table has it. */
function commandOf({ organization, ...rest }: Record<string, string>): string {
  const options = Object.entries({ ...rest, ...(organization ? { org: organization } : {}) });
  return ["sluice usage report", ...options.map(([name, value]) => `--${name} ${value}`)].join(" ");
}

/** The months that one asks for most. */
function Months() {
  const now = new Date();
  const month = (back: number) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7);
  const chosen = query.value.get("from");
  const button = (label: string, from: string | null, to: string | null) => (
    <button type="button" class="small" aria-pressed={chosen === from} onClick={() => replaceQuery({ from, to })}>
      {label}
    </button>
  );
  return (
    <p class="months">
      {button("This month", null, null)}
      {button("Last month", month(1), month(0))}
      {button("The month before", month(2), month(1))}
    </p>
  );
}

function Totals({ report: { total, running } }: { report: Report }) {
  const input = total.input_tokens + total.cached_input_tokens + total.cache_write_tokens;
  return (
    <div class="dials">
      <Total
        name="Cost"
        figure={moneyWritten(total.cost.total)}
        title={exactly(total.cost.total)}
        more={`${moneyWritten(total.cost.extra_usage)} of it extra usage`}
      />
      <Total
        name="Requests"
        figure={compacted(total.requests)}
        title={grouped(total.requests)}
        more={`${grouped(running.requests)} still run, with ${moneyWritten(running.held)} held`}
      />
      <Total
        name="Input tokens"
        figure={compacted(input)}
        title={`${grouped(input)} tokens`}
        more={`${compacted(total.cached_input_tokens)} of them from caches`}
      />
      <Total
        name="Output tokens"
        figure={compacted(total.output_tokens)}
        title={`${grouped(total.output_tokens)} tokens`}
        more={`${compacted(total.reasoning_tokens)} of them reasoning`}
      />
    </div>
  );
}

function Total({ name, figure, title, more }: { name: string; figure: string; title: string; more: string }) {
  return (
    <div class="dial">
      <h2>{name}</h2>
      <p class="figure" title={title}>
        {figure}
      </p>
      <p class="fine">{more}</p>
    </div>
  );
}

function Days({ report: { rows, total, from, to, currency } }: { report: Report }) {
  if (rows.length === 0) return <Empty>No day with usage in this span.</Empty>;
  const costs = new Map(rows.map((row) => [row.day, figureOf(row.cost.total)]));
  const days = daysBetween(from, to);
  const times = days.map((day) => Date.parse(`${day}T12:00:00Z`) / 1000);
  return (
    <Chart
      label={`Cost by day: ${moneyWritten(total.cost.total)} on ${rows.length} days. The table has the figures.`}
      times={times}
      values={[days.map((day) => costs.get(day) ?? null)]}
      span={[Date.parse(from) / 1000, Date.parse(to) / 1000]}
      lines={[{ label: "cost", color: "--chart-1" }]}
      height={160}
      kind="bars"
      written={(value) => moneyWritten({ amount: value.toFixed(9), currency })}
    />
  );
}

/** The days of UTC of a span. A day without usage has no row in the report. */
function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at < Date.parse(to); at += 86_400_000)
    days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

function Downloads({ input }: { input: Record<string, string> }) {
  const [failure, setFailure] = useState<string | null>(null);
  return (
    <span class="acts">
      {failure && <span role="alert">{failure}</span>}
      {(["csv", "focus"] as const).map((format) => (
        <button
          key={format}
          type="button"
          class="small"
          onClick={() => save(askedOf(input, format), format).then(setFailure)}
        >
          {format === "csv" ? "CSV" : "FOCUS"}
        </button>
      ))}
    </span>
  );
}

/** FOCUS has groups of its own, and a span: days, unless the page adds up by month. */
function askedOf({ by, ...rest }: Record<string, string>, format: string): Record<string, string> {
  return { ...rest, ...(by !== undefined && (format === "csv" || by === "month") ? { by } : {}) };
}

/** A link could not carry the secret of the session. Answers with the reason, where it could not be saved. */
async function save(input: Record<string, string>, format: string): Promise<string | null> {
  try {
    const address = URL.createObjectURL(await download("reportUsage", input, format));
    const link = document.createElement("a");
    link.href = address;
    link.download = `sluice-usage-${format}.csv`;
    link.click();
    URL.revokeObjectURL(address);
    announce("The report was saved.");
    return null;
  } catch (failure) {
    return (failure as Error).message;
  }
}
