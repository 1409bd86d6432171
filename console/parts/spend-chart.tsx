/**
 * Spend over time, stacked by what it was for, beside the period before, with the forecast to the end of the period.
 */
import { useMemo } from "preact/hooks";
import { go } from "../core/address.ts";
import { figureOf, moneyShort, moneyWritten, nanosOf } from "../core/money.ts";
import {
  type Bucket,
  bucketsOf,
  type Range,
  rangeBefore,
  rangeWords,
  sameSoFar,
  spanAsked,
  unitOf,
} from "../core/range.ts";
import {
  changeWords,
  type Forecast,
  forecastOf,
  moneyIn,
  paceWords,
  type Report,
  type Series,
  type Subject,
  seriesOf,
  totalsOf,
} from "../core/spend.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { Money } from "./number.tsx";
import { type Drawn, LegendEntry, Plot } from "./plot.tsx";
import { Empty } from "./section.tsx";

/** The filters of spend: slugs and IDs. */
export type Narrowed = Partial<Record<"organization" | "team" | "person" | "key" | "model", string>>;

interface Spent {
  of: Narrowed;
  by: Subject;
  range: Range;
  now_ms: number;
  /** The address that a bar links to, for its own range. */
  linkTo?: (bucket: Bucket) => string;
  /** The address that a name in the legend links to. */
  linkOf?: (by: Subject, id: string) => string;
}

/** The most series that get a color of their own. */
const series_max = 7;

export function SpendChart({ of, by, range, now_ms, linkTo, linkOf }: Spent) {
  const unit = unitOf(range);
  const before = rangeBefore(range);
  const soFar = sameSoFar(range, before, now_ms);
  const asked = useAnswer("reportUsage", {
    ...of,
    by: `${by},${unit}`,
    groups_max: series_max,
    ...spanAsked(range, [unit]),
  });
  const past = { priority: "low" } as const;
  const earlier = useAnswer("reportUsage", { ...of, by: unit, ...spanAsked(before, [unit]) }, past);
  const compared = useAnswer(
    "reportUsage",
    soFar.to_ms > soFar.from_ms ? { ...of, by: "outcome", ...spanAsked(soFar, []) } : null,
    past,
  );
  return (
    <Show of={asked}>
      {(report) => (
        <Chart
          report={report}
          by={by}
          range={range}
          now_ms={now_ms}
          before={earlier.current && { report: earlier.current, range: before }}
          compared={compared.current && { report: compared.current, range: soFar }}
          linkTo={linkTo}
          linkOf={linkOf}
        />
      )}
    </Show>
  );
}

interface Past {
  report: Report;
  range: Range;
}
interface Charted extends Pick<Spent, "by" | "range" | "now_ms"> {
  report: Report;
  before: Past | null;
  compared: Past | null;
  linkTo: Spent["linkTo"];
  linkOf: Spent["linkOf"];
}

function Chart(props: Charted) {
  const { report, by, range, now_ms, before, compared, linkTo, linkOf } = props;
  const buckets = useMemo(() => bucketsOf(range), [range.from_ms, range.to_ms, range.zone.name]);
  const series = seriesOf(report, by, buckets);
  const totals = totalsOf(series, buckets);
  const ahead = forecastOf(totals, buckets, unitOf(range), now_ms);
  const forecast = ahead && sum(ahead.ahead) > 0n ? ahead : null;
  const earlier = before && pastOf(before);
  const past = earlier?.totals.some((nanos) => nanos !== 0n) ? earlier : null;
  const figure = (nanos: bigint) => figureOf(moneyIn(report, nanos));
  const bars: Drawn[] = series.map((one, at) => ({
    name: one.name,
    tone: toneOf(one, at),
    values: one.nanos.map(figure),
  }));
  if (forecast) bars.push({ name: "forecast", tone: "tone-ahead", values: forecast.ahead.map(figure) });
  const money = (nanos: bigint) => moneyWritten(moneyIn(report, nanos));
  const exact = (nanos: bigint) => <Money of={moneyIn(report, nanos)} />;
  if (report.rows.length === 0 && !past)
    return <Empty>Nothing was used in this period. A request counts when it has ended.</Empty>;
  return (
    <Plot
      label={`Spend, ${rangeWords(range)}: ${moneyWritten(report.total.cost.total)}.`}
      places={buckets}
      bars={bars}
      lines={
        past
          ? [
              {
                name: "before",
                tone: "line-before",
                values: buckets.map((_, at) => (past.totals[at] === undefined ? null : figure(past.totals[at]!))),
              },
            ]
          : []
      }
      written={(value) => moneyShort(value, report.currency)}
      open={linkTo && ((at) => go(linkTo(buckets[at]!)))}
      said={(at) =>
        at === null ? (
          <InAll report={report} range={range} compared={compared} forecast={forecast} />
        ) : (
          <>
            <strong>{buckets[at]!.title}</strong>: {exact(totals[at]!)}
            {forecast && forecast.ahead[at]! > 0n && `, forecast ${money(totals[at]! + forecast.ahead[at]!)}`}
            {past?.totals[at] !== undefined && ` (${past.buckets[at]!.title}: ${money(past.totals[at]!)})`}
          </>
        )
      }
      legend={(at) => (
        <ul class="legend">
          {series.map((one, place) => (
            <LegendEntry
              key={one.id ?? one.name}
              title={one.name}
              tone={toneOf(one, place)}
              figure={exact(at === null ? one.total : one.nanos[at]!)}
            >
              {one.id !== null && linkOf ? <a href={linkOf(by, one.id)}>{one.name}</a> : one.name}
            </LegendEntry>
          ))}
          {forecast && (
            <LegendEntry
              title={`As in the last ${paceWords[unitOf(range)]}`}
              tone="tone-ahead"
              figure={exact(at === null ? forecast.total - sum(totals) : forecast.ahead[at]!)}
            >
              still to come, as in the last {paceWords[unitOf(range)]}
            </LegendEntry>
          )}
          {before && past && (
            <LegendEntry
              title="The period before"
              tone="line-before"
              figure={exact(at === null ? sum(past.totals) : (past.totals[at] ?? 0n))}
            >
              {rangeWords(before.range)}
            </LegendEntry>
          )}
        </ul>
      )}
    />
  );
}

const sum = (all: readonly bigint[]) => all.reduce((total, one) => total + one, 0n);
const toneOf = ({ isOthers }: Series, at: number) => (isOthers ? "tone-others" : `tone-${at}`);

function pastOf({ report, range }: Past) {
  const buckets = bucketsOf(range);
  const [all] = seriesOf(report, null, buckets);
  return { buckets, totals: all?.nanos ?? buckets.map(() => 0n) };
}

interface InAllProps {
  report: Report;
  range: Range;
  compared: Past | null;
  forecast: Forecast | null;
}

function InAll({ report, range, compared, forecast }: InAllProps) {
  const { total } = report.total.cost;
  const before = compared && nanosOf(compared.report.total.cost.total);
  const change = before === null ? null : changeWords(nanosOf(total), before);
  return (
    <>
      <strong>{rangeWords(range)}</strong>: {moneyWritten(total)}
      {change && compared && (
        <>
          , <strong>{change}</strong> on {rangeWords(compared.range)} ({moneyWritten(compared.report.total.cost.total)})
        </>
      )}
      {forecast && (
        <>
          . Forecast: <strong>{moneyWritten(moneyIn(report, forecast.total))}</strong>
        </>
      )}
    </>
  );
}
