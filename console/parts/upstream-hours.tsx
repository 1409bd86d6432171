/**
 * The report of how engines answered in each hour of a day or two: times to the first token, the number of failures and
 * their kinds. The server computes it from the records of the single requests.
 */
import type { Answer } from "../core/client.ts";
import { grouped, milliseconds, percent, wordsOf } from "../core/format.ts";
import { bucketsOf, type Range, rangeWords } from "../core/range.ts";
import { may, membership, session } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { LegendEntry, Plot } from "./plot.tsx";
import { spanOfAddress } from "./range-picker.tsx";
import { Empty, Section } from "./section.tsx";
import { Table } from "./table.tsx";

type Report = Answer<"reportUpstreams">;
type Measured = Report["total"];

const hour_ms = 3_600_000;
const hours_max = 48;
const hours_usual = 24;

interface Props {
  of: { organization?: string | undefined; model?: string | undefined; upstream?: string | undefined };
  /** The time range of the page; if it is too long for this report, the last day is shown. */
  range: Range;
  now_ms: number;
}

export function UpstreamHours({ of, range, now_ms }: Props) {
  const hours = hoursOf(range, now_ms);
  const asked = useAnswer("reportUpstreams", {
    ...(of.organization ? { organization: of.organization } : {}),
    ...(of.model ? { model: of.model } : {}),
    ...(of.upstream ? { upstream: of.upstream } : {}),
    from: hours.from,
    to: hours.to,
  });
  return (
    <Section title="Engines by the hour" aside={[...whoseWords(of), rangeWords(hours)].join(", ")}>
      <Show of={asked}>
        {(report) =>
          report.total.requests === 0 && report.followed.length === 0 ? (
            <Empty>No request has ended in this time.</Empty>
          ) : (
            <>
              <div class="columns">
                <Times report={report} range={hours} />
                <Ends report={report} range={hours} />
              </div>
              {of.upstream === undefined && (
                <div class="sum">
                  <Engines of={report} />
                </div>
              )}
              <Troubles of={report} />
            </>
          )
        }
      </Show>
    </Section>
  );
}

/** Whose requests the report covers, in words, if nothing else on the page says it. */
function whoseWords({ organization, model, upstream }: Props["of"]): string[] {
  const own = organization ?? membership.value?.organization;
  if (own) return [`requests of ${own}`];
  if (session.value?.role === "organization-admin") return ["requests of your organization"];
  return model || upstream ? [] : ["of the whole service"];
}

/** The last 24 hours, in the time zone that the address names, or otherwise in the reader's. */
export function lastDay(now_ms: number): Range {
  const { range } = spanOfAddress(now_ms);
  return { ...range, from_ms: now_ms - hours_usual * hour_ms, to_ms: now_ms };
}

/**
 * The range up to the end of the current hour at most, so that the same report is asked for all hour long. A range of
 * more than 48 hours is cut to its last 24.
 */
function hoursOf({ from_ms, to_ms, zone }: Range, now_ms: number): Range {
  const end_ms = Math.min(to_ms, Math.ceil(now_ms / hour_ms) * hour_ms);
  const isShort = end_ms - from_ms <= hours_max * hour_ms && end_ms > from_ms;
  const begin_ms = isShort ? Math.floor(from_ms / hour_ms) * hour_ms : end_ms - hours_usual * hour_ms;
  const written = (at_ms: number) => new Date(at_ms).toISOString();
  return { from: written(begin_ms), to: written(end_ms), from_ms: begin_ms, to_ms: end_ms, zone };
}

interface Charted {
  report: Report;
  range: Range;
}

/** The hours of the range, their measures, and the measures at one of them, or for null of all. */
function measuredIn({ report: { hours, total }, range }: Charted) {
  const buckets = bucketsOf(range);
  const found = new Map(hours.map((one) => [one.hour, one]));
  const measures = buckets.map(({ key }): Measured => found.get(key) ?? nothing);
  return { buckets, measures, total, at: (place: number | null) => (place === null ? total : measures[place]!) };
}

function Times(charted: Charted) {
  const { buckets, measures, total, at } = measuredIn(charted);
  return (
    <Plot
      label={`Time to the first token: median ${milliseconds(total.first_part_p50_ms)}, 95 % within ${milliseconds(total.first_part_p95_ms)}.`}
      places={buckets}
      lines={[
        { name: "95 %", tone: "line-1", values: measures.map((one) => one.first_part_p95_ms) },
        { name: "median", tone: "line-0", values: measures.map((one) => one.first_part_p50_ms) },
      ]}
      written={milliseconds}
      height={180}
      said={(place) => <strong>{place === null ? "Time to the first token" : buckets[place]!.title}</strong>}
      legend={(place) => (
        <ul class="legend">
          <LegendEntry tone="line-0" figure={milliseconds(at(place).first_part_p50_ms)}>
            median
          </LegendEntry>
          <LegendEntry tone="line-1" figure={milliseconds(at(place).first_part_p95_ms)}>
            95 % within
          </LegendEntry>
        </ul>
      )}
    />
  );
}

function Ends(charted: Charted) {
  const { buckets, measures, total, at } = measuredIn(charted);
  return (
    <Plot
      label={`Requests: ${grouped(total.requests)}, of which ${grouped(total.failed)} failed.`}
      places={buckets}
      bars={[
        { name: "failed", tone: "tone-bad", values: measures.map(({ failed }) => failed) },
        { name: "others", tone: "tone-0", values: measures.map(({ requests, failed }) => requests - failed) },
      ]}
      written={grouped}
      isCount
      height={180}
      said={(place) => <strong>{place === null ? "Requests" : buckets[place]!.title}</strong>}
      legend={(place) => (
        <ul class="legend">
          <LegendEntry tone="tone-bad" figure={grouped(at(place).failed)}>
            failed
          </LegendEntry>
          <LegendEntry tone="tone-0" figure={grouped(at(place).requests - at(place).failed)}>
            others
          </LegendEntry>
        </ul>
      )}
    />
  );
}

const nothing: Measured = {
  requests: 0,
  failed: 0,
  cancelled: 0,
  first_part_p50_ms: null,
  first_part_p95_ms: null,
  duration_p50_ms: null,
  duration_p95_ms: null,
};

function Engines({ of: { upstreams } }: { of: Report }) {
  return (
    <Table
      caption="Engines by the hour"
      isDense
      rows={upstreams}
      keyOf={({ upstream }) => upstream ?? "none"}
      columns={[
        {
          head: "Engine",
          cell: ({ upstream }) => (upstream === null ? "none was asked" : <EngineLink name={upstream} />),
        },
        { head: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests) },
        { head: "Failed", isNumber: true, cell: (one) => failedWords(one) },
        { head: "First token, median", isNumber: true, cell: (one) => milliseconds(one.first_part_p50_ms) },
        { head: "First token, 95 %", isNumber: true, cell: (one) => milliseconds(one.first_part_p95_ms) },
        { head: "Duration, median", isNumber: true, cell: (one) => milliseconds(one.duration_p50_ms) },
        { head: "Duration, 95 %", isNumber: true, cell: (one) => milliseconds(one.duration_p95_ms) },
      ]}
    />
  );
}

export function EngineLink({ name }: { name: string }) {
  return may("getFleet") ? <a href={`/engines/${encodeURIComponent(name)}`}>{name}</a> : <span>{name}</span>;
}

const failedWords = ({ failed, requests }: Measured) =>
  failed === 0 ? "0" : `${grouped(failed)} (${percent((failed / Math.max(1, requests)) * 100)})`;

interface Trouble {
  upstream: string | null;
  what: string;
  seen: string;
  times: number;
}

function Troubles({ of: { failures, followed } }: { of: Report }) {
  const all: Trouble[] = [
    ...failures.map(({ upstream, code, requests }) => ({
      upstream,
      what: wordsOf(code ?? "unknown"),
      seen: "the client got it",
      times: requests,
    })),
    ...followed.map(({ upstream, outcome, attempts }) => ({
      upstream,
      what: wordsOf(outcome),
      seen: "another attempt followed",
      times: attempts,
    })),
  ];
  if (all.length === 0) return <p class="calm-words sum">No engine failed.</p>;
  return (
    <div class="sum">
      <Table
        caption="Errors by engine"
        isDense
        rows={all}
        keyOf={({ upstream, what, seen }) => `${upstream} ${what} ${seen}`}
        columns={[
          {
            head: "Engine",
            cell: ({ upstream }) => (upstream === null ? "none was asked" : <EngineLink name={upstream} />),
          },
          { head: "Error", cell: ({ what }) => what },
          { head: "Seen", cell: ({ seen }) => seen },
          { head: "Times", isNumber: true, cell: ({ times }) => grouped(times) },
        ]}
      />
    </div>
  );
}
