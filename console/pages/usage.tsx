/**
 * The page Usage: spend over time, divided by a group such as the model, beside budgets. Links lead from sums to the
 * requests that they add up. The address has all of the page's state.
 */

import { useMemo, useState } from "preact/hooks";
import { query, replaceQuery, withQuery } from "../core/address.ts";
import { announce } from "../core/announce.ts";
import { download } from "../core/client.ts";
import { reportCommand } from "../core/command-line.ts";
import { compacted, grouped, shortId } from "../core/format.ts";
import { exactly, moneyWritten } from "../core/money.ts";
import { isNarrow, rowsAtFirst } from "../core/narrow.ts";
import { type Bucket, rangeBefore, rangeWords, sameSoFar, spanAsked } from "../core/range.ts";
import { isMember, may, membership } from "../core/session.ts";
import { nameOf, type Report, type Subject, subjects } from "../core/spend.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "../parts/asked.tsx";
import { Budgets } from "../parts/budgets.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Copy } from "../parts/copy.tsx";
import { type Filter, Filters } from "../parts/filters.tsx";
import { AskForLimit } from "../parts/limit-request-acts.tsx";
import { RangePicker, readersZone, spanOfAddress } from "../parts/range-picker.tsx";
import { leftOutOf, onlyAddress, ReportTable } from "../parts/report-table.tsx";
import { Empty, Folding, Page, Section } from "../parts/section.tsx";
import { type Narrowed, SpendChart } from "../parts/spend-chart.tsx";
import { Time } from "../parts/time.tsx";
import { TopList } from "../parts/top-list.tsx";
import { UpstreamHours } from "../parts/upstream-hours.tsx";

/** The most rows that the page can show. The files that the reader saves have all rows. */
const rows_max = 1000;
const narrowings = ["organization", "team", "person", "key", "model"] as const satisfies readonly Subject[];

/**
 * The groups that the reader can choose. Some would have only one row and are left out: organization, team and person
 * for a member; organization for somebody who acts in one.
 */
function groupsSeen(): string[] {
  const hidden = isMember.value ? ["organization", "team", "person"] : membership.value ? ["organization"] : [];
  return [...subjects.filter((one) => !hidden.includes(one)), "day", "month"];
}

const usualGroup = () => (isMember.value ? "model" : membership.value ? "person" : "organization");

export function UsagePage() {
  const now_ms = useMemo(() => Date.now(), [query.value.toString()]);
  const spanned = spanOfAddress(now_ms);
  const { range } = spanned;
  const groups = groupsSeen();
  const by = groups.find((one) => one === query.value.get("by")) ?? usualGroup();
  const of: Narrowed = Object.fromEntries(
    narrowings.flatMap((one) => [[one, query.value.get(one)]]).filter(([, value]) => value),
  );
  const isTime = by === "day" || by === "month";
  const subject = (isTime ? "model" : by) as Subject;
  const largest = Number(query.value.get("rows")) || (isTime && !isNarrow() ? rows_max : rowsAtFirst());
  // A report by day or month has few rows, so it asks for all of them. Any other group may have thousands, so only the
  // largest are requested.
  const some = isTime ? {} : { largest };
  const asked = useAnswer("reportUsage", { ...of, by, ...some, ...spanAsked(range, [by]) });
  const before = sameSoFar(range, rangeBefore(range), now_ms);
  const earlier = useAnswer(
    "reportUsage",
    isTime || before.to_ms <= before.from_ms ? null : { ...of, by, ...spanAsked(before, [by]), largest: rows_max },
  );
  const top = { of, range, linkOf };
  const filters: Filter[] = [
    ...(membership.value
      ? []
      : [{ name: "organization", label: "Organization", hint: "all", finds: "organization" } as const]),
    { name: "by", label: "Group by", choices: groups, fallback: usualGroup() },
  ];
  return (
    <Page
      title="Usage"
      aside={
        <>
          <span>
            {rangeWords(range)}
            {asked.answer && (
              <>
                , as of <Time at={asked.answer.as_of} />
              </>
            )}
          </span>
          <AskForLimit />
          <Downloads of={of} by={by} asked={{ from: range.from, to: range.to }} zone={range.zone.name} />
          <Copy text={sharedAddress()} label="Copy link" />
        </>
      }
    >
      <div class="asked">
        <RangePicker of={spanned} now_ms={now_ms} />
        <Filters of={filters} />
      </div>
      <Chips of={of} />
      <Show of={asked}>{(report) => <Totals report={report} />}</Show>
      <Section title={`Spend by ${subject}`}>
        <SpendChart of={of} by={subject} range={range} now_ms={now_ms} linkTo={spanAddress} linkOf={linkOf} />
      </Section>
      <div class="columns">
        <Budgets by={subject} of={of} now_ms={now_ms} />
        <div>
          {!isMember.value && by !== "person" && !of.person && <TopList title="Top people" by="person" {...top} />}
          {subject !== "model" && !of.model && <TopList title="Top models" by="model" {...top} />}
        </div>
      </div>
      <Section title={`By ${by}`}>
        <Show of={asked}>
          {(report) =>
            report.rows.length === 0 ? (
              <Empty>Nothing was used in this period. A request counts when it has ended.</Empty>
            ) : (
              <>
                <ReportTable report={report} by={by} zone={range.zone} rows_max={largest} before={earlier.current} />
                {leftOutOf(report, largest) > 0 && largest < rows_max && (
                  <nav class="pages" aria-label="Rows of the report">
                    <a href={withQuery({ rows: String(Math.min(rows_max, largest * 2)) })}>More rows</a>
                  </nav>
                )}
                <p class="fine sum">
                  Adjustments by operators are in the sums, and are no requests:{" "}
                  <a href={withQuery({ by: "operation" })}>by operation</a> they have a row.
                </p>
              </>
            )
          }
        </Show>
      </Section>
      {may("reportUpstreams") && (
        <Folding label="How the engines answered">
          <UpstreamHours of={{ organization: of.organization, model: of.model }} range={range} now_ms={now_ms} />
        </Folding>
      )}
      <CommandLine text={reportCommand({ ...spanAsked(range, ["day"]), ...of, by })} />
    </Page>
  );
}

/** The address to share. It names the time zone, because in another reader's zone the same dates are other hours. */
function sharedAddress(): string {
  return location.origin + withQuery({ zone: query.value.get("zone") ?? readersZone() });
}

const spanAddress = ({ from_ms, to_ms }: Bucket) => {
  const { range } = spanOfAddress(Date.now());
  const { zone } = range;
  const isOfDays = [from_ms, to_ms].every((at_ms) => zone.startOf(zone.dateOf(at_ms)) === at_ms);
  const written = (at_ms: number) => (isOfDays ? zone.dateOf(at_ms) : new Date(at_ms).toISOString());
  return withQuery({ from: written(from_ms), to: written(to_ms), rows: null });
};

const linkOf = (by: Subject, id: string) =>
  (narrowings as readonly Subject[]).includes(by) ? onlyAddress(by, id) : withQuery({ by });

/** The page's filters, each with a button that removes it. */
function Chips({ of }: { of: Narrowed }) {
  const set = narrowings.filter((one) => one !== "organization" && of[one]);
  if (set.length === 0) return null;
  return (
    <p class="chips">
      {set.map((one) => (
        <Chip key={one} by={one} id={of[one]!} />
      ))}
    </p>
  );
}

function Chip({ by, id }: { by: Subject; id: string }) {
  const named = useAnswer("reportUsage", by === "model" ? null : { [by]: id, by, largest: 1, from: yearAgo() });
  const [row] = named.current?.rows ?? [];
  const name = by === "model" ? id : row ? nameOf(row, by) : shortId(id);
  return (
    <button type="button" class="small" onClick={() => replaceQuery({ [by]: null })}>
      {by}: {name} <span aria-hidden="true">×</span>
      <span class="hidden">, remove</span>
    </button>
  );
}

/** The first day of the month eleven months ago: a year in whole months, for all of which usage is kept. */
function yearAgo(): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear() - 1, now.getUTCMonth() + 1)).toISOString().slice(0, 10);
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
        more={`${grouped(running.requests)} still running, with ${moneyWritten(running.held)} held`}
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

interface Saved {
  of: Narrowed;
  by: string;
  asked: { from: string; to: string };
  zone: string;
}

function Downloads({ of, by, asked, zone }: Saved) {
  const [failure, setFailure] = useState<string | null>(null);
  const inputs = {
    csv: { ...of, ...asked, by, ...(zone === "UTC" ? {} : { zone }) },
    // A report in the FOCUS format has fixed groups, by month or by day, and its days are those of UTC.
    focus: { ...of, ...asked, ...(by === "month" ? { by } : {}) },
  };
  return (
    <span class="acts">
      {failure && <span role="alert">{failure}</span>}
      {(["csv", "focus"] as const).map((format) => (
        <button key={format} type="button" class="small" onClick={() => save(inputs[format], format).then(setFailure)}>
          {format === "csv" ? "CSV" : "FOCUS"}
        </button>
      ))}
    </span>
  );
}

/**
 * Saves the report as a file. A plain link could not send the secret of the session. Returns why saving failed, or
 * null.
 */
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
