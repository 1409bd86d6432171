/** Budgets: how much of each is used, beside how much of its time is over, and when it will be full at this pace. */
import { percent } from "../core/format.ts";
import { exactly, figureOf, moneyWritten } from "../core/money.ts";
import { isNarrow } from "../core/narrow.ts";
import { type Pace, paceOf, paceWords } from "../core/pace.ts";
import { isMember, may, membership } from "../core/session.ts";
import { idOf, nameOf, type Row, type Subject } from "../core/spend.ts";
import { useAnswer } from "../core/use-answer.ts";
import { day_ms } from "../core/zone.ts";
import { Show } from "./asked.tsx";
import { Empty, Section } from "./section.tsx";
import type { Narrowed } from "./spend-chart.tsx";

type Standing = NonNullable<Row["standing"]>;
type Window = Standing["week"];

interface Budget {
  name: string;
  /** The kind of window that has the limit. */
  kind: string;
  window: Window & { limit: NonNullable<Window["limit"]> };
  pace: Pace;
}

const budgeted = ["organization", "team", "person", "key"] as const satisfies readonly Subject[];
/** How many budgets are shown. A narrow screen shows fewer, because more follows below. */
const shownAtMost = () => (isNarrow() ? 5 : 12);
const asked_max = 100;
/** The number of days that covers a whole month, whenever it began. */
const days_back = 31;

interface Props {
  by: Subject;
  of: Narrowed;
  now_ms: number;
}

/** The budgets of the subjects that the page is grouped by, or otherwise of all subjects that the reader sees. */
export function Budgets({ by, of: { model: _, ...of }, now_ms }: Props) {
  const own = of.organization ?? membership.value?.organization;
  const isBudgeted = budgeted.some((one) => one === by);
  const usual = isMember.value ? "person" : own ? "team" : "organization";
  const subject: Subject = isBudgeted ? by : usual;
  const groups = subject === "person" && !own ? "organization,person" : subject;
  const from = new Date(now_ms - days_back * day_ms).toISOString().slice(0, 10);
  const asked = useAnswer("reportUsage", { ...of, by: groups, from, largest: asked_max });
  // Most organizations have budgets for their teams, so these are shown as well.
  const hasTeams = subject === "organization";
  const teams = useAnswer(
    "reportUsage",
    hasTeams ? { ...of, by: "organization,team", from, largest: asked_max } : null,
  );
  const whole = useAnswer("readUsage", own && may("readUsage") ? { organization: own } : null);
  const plural = hasTeams ? "organizations and teams" : subject === "person" ? "people" : `${subject}s`;
  return (
    <Section
      title="Budgets"
      aside={`${isMember.value ? "" : `of ${plural}, `}as they are now; the mark shows even use`}
    >
      <Show of={asked}>
        {({ rows }) => {
          const budgets = [
            ...(whole.current && !hasTeams ? budgetsOf(whole.current.organization, whole.current, now_ms) : []),
            ...rows.flatMap((row) => rowBudgets(row, subject, now_ms)),
            ...(teams.current?.rows ?? []).flatMap((row) => rowBudgets(row, "team", now_ms)),
          ].sort(mostUrgent);
          const shown_max = shownAtMost();
          if (budgets.length === 0) return <Empty>{noneWords(subject)}</Empty>;
          return (
            <>
              <ul class="budgets">
                {budgets.slice(0, shown_max).map((budget) => (
                  <Line key={`${budget.name} ${budget.kind}`} of={budget} now_ms={now_ms} />
                ))}
              </ul>
              {budgets.length > shown_max && (
                <p class="fine sum">{budgets.length - shown_max} more have more time than these.</p>
              )}
            </>
          );
        }}
      </Show>
    </Section>
  );
}

/** The budgets of a row, with the name of the row's organization if there are several organizations. */
function rowBudgets(row: Row, subject: Subject, now_ms: number): Budget[] {
  if (!row.standing || idOf(row, subject) === null) return [];
  const name = nameOf(row, subject);
  return budgetsOf(
    row.organization && subject !== "organization" ? `${name}, ${row.organization}` : name,
    row.standing,
    now_ms,
  );
}

function noneWords(subject: Subject): string {
  if (isMember.value) return "You have no budget of your own, for a week or a month.";
  return `No ${subject} with recent requests has a budget for a week or a month.`;
}

function budgetsOf(name: string, standing: Pick<Standing, "week" | "month">, now_ms: number): Budget[] {
  return (["week", "month"] as const).flatMap((kind) => {
    const window = standing[kind];
    const { limit } = window;
    if (limit === null) return [];
    const pace = paceOf(
      {
        used: figureOf(window.used),
        limit: figureOf(limit),
        from_ms: Date.parse(window.starts_at),
        to_ms: Date.parse(window.reset_at),
      },
      now_ms,
    );
    return [{ name, kind, window: { ...window, limit }, pace }];
  });
}

/** Sorts budgets: full ones first, then by when they will be full, then by how much they will have used. */
function mostUrgent(one: Budget, other: Budget): number {
  const rank = ({ pace: { isFull, full_ms, end_percent } }: Budget) => [
    isFull ? 0 : full_ms !== null ? 1 : 2,
    full_ms ?? 0,
    -(end_percent ?? 0),
  ];
  const [first, second] = [rank(one), rank(other)];
  const at = first.findIndex((value, place) => value !== second[place]);
  return at < 0 ? 0 : first[at]! - second[at]!;
}

function Line({ of: { name, kind, window, pace }, now_ms }: { of: Budget; now_ms: number }) {
  const { used, limit, held, reset_at } = window;
  const share = figureOf(limit) === 0 ? 100 : (figureOf(used) / figureOf(limit)) * 100;
  const tone = pace.isFull ? "bad" : pace.full_ms !== null ? "warn" : "calm";
  return (
    <li>
      <span class="name">
        {name} <span class="fine">{kind}</span>
      </span>
      <span title={`${exactly(used)} used, ${exactly(held)} held, of ${exactly(limit)}`}>
        {moneyWritten(used)} of {moneyWritten(limit)}
      </span>
      <svg
        class={`pace-bar ${tone}`}
        viewBox="0 0 100 12"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}, ${percent(Math.min(100, share))} of the ${kind} used, ${percent(pace.elapsed_percent)} of its time over`}
      >
        <rect class="whole" y="3" width="100" height="6" />
        <rect class="used" y="3" width={Math.min(100, share)} height="6" />
        <rect
          class="held"
          x={Math.min(100, share)}
          y="3"
          width={Math.min(Math.max(0, 100 - share), (figureOf(held) / figureOf(limit)) * 100)}
          height="6"
        />
        <line class="even" x1={pace.elapsed_percent} x2={pace.elapsed_percent} y1="0" y2="12" />
      </svg>
      <span class={`pace ${tone}`}>{paceWords(pace, Date.parse(reset_at), now_ms)}</span>
    </li>
  );
}
