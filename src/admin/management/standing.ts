/**
 * STANDING: the share of its limits that a subject has used, as verbs of management return it and commands print it.
 */
import Type from "typebox";
import { type Currency, grouped, inWords, moneyOf, percentOf } from "../../core/inference/money.ts";
import { count, Money, nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { type WindowReading, windowKinds } from "../../core/store/ledger.ts";
import { minute } from "../../core/time/written.ts";
import { type Standing as StoredStanding, tightestWindow } from "../../features/telemetry/store/standing.ts";
import { isNothing } from "../store/amounts.ts";
import { instant, limit } from "../store/shapes.ts";
import { type Column, type Facts, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { dollars } from "./money.ts";
import { examples } from "./shapes.ts";

export const Window = Type.Object(
  {
    usage_percent: Type.Number({ minimum: 0 }),
    used: Money,
    held: Money,
    limit: nullable(Money),
    starts_at: instant("When it began."),
    reset_at: instant("When it ends."),
  },
  { $id: "Window" },
);
export type Window = Value<typeof Window>;

export const Standing = Type.Object(
  {
    usage_percent: nullable(Type.Number({ description: "Of the tightest limit. Null: no window is limited." })),
    session: Window,
    week: Window,
    month: Window,
    running_requests: count(),
    concurrent_requests: limit(),
  },
  { $id: "Standing", description: "How much of its limits is used, now." },
);
export type Standing = Value<typeof Standing>;

/** The member `standing` (the used share of limits) of an organization, a team or a key. Null: it has no limits. */
export const standing = () => nullable(Standing);

export const exampleWindow: Window = {
  usagePercent: 12.5,
  used: dollars(125_000_000),
  held: dollars(0),
  limit: dollars(1_000_000_000),
  startsAt: examples.at,
  resetAt: examples.at,
};
export const exampleStanding: Standing = {
  usagePercent: 12.5,
  session: exampleWindow,
  week: exampleWindow,
  month: exampleWindow,
  runningRequests: 3,
  concurrentRequests: 20,
};

/** The member of a list's input that filters the items by the used share of their limits. */
export const over = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 100,
    description: "Only what has used this percentage of a window's limit, or more.",
    "x-must-be": "a percentage from 1 to 100",
  }),
);
export const overFlag = (things: string) =>
  flag("--over <percent>", `only ${things} that have used at least this percentage of a limit, such as 80`);

/** The names of the usage windows for people. */
export const windowWords = { session: "5-hour session", week: "week", month: "month" } as const;

export function windowShown({ used, held, limit, startsAt, resetAt }: WindowReading, currency: Currency): Window {
  const money = (nanos: number) => moneyOf(nanos, currency);
  return {
    usagePercent: percentOf(used, limit),
    used: money(used),
    held: money(held),
    limit: limit === null ? null : money(limit),
    startsAt,
    resetAt,
  };
}

export function standingShown(standing: StoredStanding, currency: Currency): Standing {
  const { windows, running, concurrentRequests } = standing;
  return {
    usagePercent: tightestWindow(standing)?.percent ?? null,
    session: windowShown(windows.session, currency),
    week: windowShown(windows.week, currency),
    month: windowShown(windows.month, currency),
    runningRequests: running,
    concurrentRequests,
  };
}

/** The standings (used shares of limits) of things, by the ids of the things. A thing without limits is left out. */
export async function standingsOf(
  { standings, currency }: Pick<ManagementContext, "standings" | "currency">,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Standing>> {
  const found = await standings.standings(ids);
  if (found.size === 0) return new Map();
  const own = await currency();
  return new Map([...found].map(([id, one]) => [id, standingShown(one, own)]));
}

/** Adds to each thing its standing (used share of limits); null if the thing has no limits. */
export async function withStandings<One extends { id: string }>(
  context: Pick<ManagementContext, "standings" | "currency">,
  all: readonly One[],
): Promise<(One & { standing: Standing | null })[]> {
  const found = await standingsOf(
    context,
    all.map(({ id }) => id),
  );
  return all.map((one) => ({ ...one, standing: found.get(one.id) ?? null }));
}

export async function withStanding<One extends { id: string }>(
  context: Pick<ManagementContext, "standings" | "currency">,
  one: One,
): Promise<One & { standing: Standing | null }> {
  return (await withStandings(context, [one]))[0]!;
}

/** A column of a list that shows the used share of the tightest limit. */
export const standingColumn: Column<{ standing: Standing | null }> = {
  head: "USED",
  optional: true,
  cell: ({ standing }) => shareInWords(standing),
};

export function shareInWords(standing: Standing | null): string {
  return standing?.usagePercent == null ? "-" : `${standing.usagePercent} %`;
}

/** The instant at which the tightest limit resets; null if no usage window is limited. */
export function tightestReset(standing: Standing | null): Date | null {
  if (standing?.usagePercent == null) return null;
  const limited = windowKinds.map((kind) => standing[kind]).filter(({ limit }) => limit !== null);
  return limited.find(({ usagePercent }) => usagePercent === standing.usagePercent)?.resetAt ?? null;
}

/** A line of output for each limited usage window. */
export function standingFacts(standing: Standing | null, models?: string): Facts {
  if (!standing) return [];
  const ofModels = models === undefined ? "" : ` for ${models}`;
  const { runningRequests, concurrentRequests } = standing;
  return [
    ...windowKinds.map((kind) => [`${windowWords[kind]} used${ofModels}`, windowInWords(standing[kind])] as const),
    [
      `running${ofModels}`,
      concurrentRequests === null ? null : `${grouped(runningRequests)} of ${grouped(concurrentRequests)}`,
    ],
  ];
}

function windowInWords({ usagePercent, used, held, limit, resetAt }: Window): string | null {
  if (limit === null) return null;
  const reserved = isNothing(held) ? "" : `, ${inWords(held)} held`;
  return `${usagePercent} %: ${inWords(used)} of ${inWords(limit)}${reserved}; resets ${minute(resetAt)} UTC`;
}
