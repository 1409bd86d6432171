/** Commands of the ledger as the arguments of `usage_batch` (migration 0004), and its rows as answers. */
import type { Prices } from "../inference/model.ts";
import type { Usage } from "../inference/usage.ts";
import { bare } from "../store/ids.ts";
import {
  type Admit,
  type AdmitAnswer,
  type Answer,
  type BillingSource,
  type Command,
  type ExtraReading,
  type RequestFacts,
  type SubjectReading,
  type UsageLimits,
  type WindowKind,
  type WindowReadings,
  window_units_max,
  windowKinds,
} from "../store/ledger.ts";
import { compositeArray, type Field } from "./composite.ts";

type AnswerWindows = { [K in `${WindowKind}_${"starts_at" | "ends_at"}`]: Date } & {
  [K in `${WindowKind | "extra"}_${"used" | "held"}`]: number;
};

/** A `usage_answer`, its windows as columns; they are null in all answers but those to an admission. */
export interface AnswerRow extends AnswerWindows {
  position: number;
  answer: string;
  at: Date;
  units: number | null;
  output_tokens: number | null;
  source: BillingSource | null;
  charged: number | null;
  uncharged: number | null;
  extra_enabled: boolean;
  extra_cap: number | null;
  subjects: (number | null)[][] | null;
}

const windowColumns = [...windowKinds, "extra"].flatMap((kind, at) =>
  ["starts_at", "ends_at", "used", "held"].map((field) => `a.${field}[1][${at + 1}] as ${kind}_${field}`),
);

/** Its parameters are what `encodeBatch` gives. */
export const batchCall = `
  select a.position, a.answer, a.at, a.units, a.output_tokens, a.source, a.charged, a.uncharged,
    a.extra_enabled, a.extra_cap, a.subjects, ${windowColumns.join(", ")}
  from unnest(usage_batch($1::usage_admit_command[], $2::usage_grow_command[], $3::usage_checkpoint_command[],
    $4::usage_settle_command[], $5::bigint[])) a`;

/** Admits, grows, checkpoints, settles, and the limits that they name. An id that is none throws: nothing was sent. */
export function encodeBatch(commands: readonly Command[]): string[] {
  const rows: Record<Command["verb"], Field[][]> = { admit: [], grow: [], checkpoint: [], settle: [] };
  const known = new Map<string, number>();
  for (const [position, command] of commands.entries()) {
    rows[command.verb].push([position, ...fieldsOf(command, (limits) => numberOf(known, limits))]);
  }
  return [
    ...[rows.admit, rows.grow, rows.checkpoint, rows.settle].map(compositeArray),
    `{${[...known.keys()].join(",")}}`,
  ];
}

/** Commands of a batch have few plans among them: each one's limits are sent once, and named by their number, from 1. */
function numberOf(known: Map<string, number>, limits: UsageLimits): number {
  const row = `{${windowKinds.map((kind) => limits[kind] ?? window_units_max).join(",")}}`;
  const number = known.get(row) ?? known.size + 1;
  known.set(row, number);
  return number;
}

function fieldsOf(command: Command, limits: (of: UsageLimits) => number): Field[] {
  switch (command.verb) {
    case "admit":
      return [
        ...facts(command),
        limits(command.limits),
        command.limits.concurrentRequests,
        command.inputUnits,
        command.outputTokens,
        command.outputTokens_min,
        command.lease_ms,
      ];
    case "grow":
      return [...names(command), command.number, limits(command.limits), command.unitsTotal, command.unitsTotal_min];
    case "checkpoint":
      return [...names(command), command.number, ...usage(command.usage), command.lease_ms];
    case "settle":
      return [
        ...facts(command),
        limits(command.limits),
        ...usage(command.usage),
        command.units,
        command.outcome,
        command.stoppedBy,
        command.errorCode,
        command.route?.upstream,
        command.route?.attempts,
        command.route?.tried && JSON.stringify(command.route.tried),
        command.route && command.route.firstPart_ms !== null ? Math.round(command.route.firstPart_ms) : null,
        command.reportRejected && JSON.stringify(command.reportRejected),
      ];
  }
}

const names = (command: { requestId: string; organizationId: string }): Field[] => [
  bare(command.requestId, "req_"),
  bare(command.organizationId, "org_"),
];
const facts = (command: RequestFacts): Field[] => [
  ...names(command),
  bare(command.keyId, "key_"),
  command.operation,
  command.model,
  command.stream,
  ...prices(command.prices),
];
const prices = (one: Prices): Field[] => [one.input, one.cachedInput, one.cacheWrite, one.output];
const usage = (one: Usage): Field[] => [
  one.inputTokens,
  one.cachedInputTokens,
  one.cacheWriteTokens,
  one.outputTokens,
  one.reasoningTokens,
  one.source,
];

export function decodeAnswer(command: Command, row: AnswerRow): Answer {
  switch (command.verb) {
    case "admit":
      return admitAnswer(command, row);
    case "grow":
      return row.answer === "granted"
        ? { answer: "granted", units: row.units! }
        : { answer: row.answer === "full" ? "full" : "gone" };
    case "checkpoint":
      return { answer: row.answer === "extended" ? "extended" : "gone" };
    case "settle":
      return row.answer === "settled"
        ? { answer: "settled", charged: row.charged!, uncharged: row.uncharged! }
        : { answer: "already" };
  }
}

function admitAnswer(command: Admit, row: AnswerRow): AdmitAnswer {
  if (row.answer === "over" || row.answer === "unknown") return { answer: row.answer };
  const windows = readingsOf(row, command.limits);
  const subjects = subjectsOf(row.subjects, windows);
  const at = row.at;
  if (row.answer === "granted") {
    return {
      answer: "granted",
      units: row.units!,
      outputTokens: row.output_tokens!,
      source: row.source!,
      windows,
      ...subjects,
      at,
    };
  }
  if (row.answer === "concurrency") return { answer: "concurrency", windows, ...subjects, at };
  const answer = row.answer === "reserved" ? "reserved" : "exhausted";
  const kinds = fullKinds(command, answer, windows);
  for (const kind of kinds) windows[kind].limit ??= window_units_max;
  return { answer, kinds, windows, ...subjects, extra: extraOf(row), at };
}

/** A `usage_answer` has a row of numbers for each; their windows begin and end as the organization's. */
function subjectsOf(rows: AnswerRow["subjects"], windows: WindowReadings): { subjects?: SubjectReading[] } {
  if (rows === null) return {};
  const subjects = rows.map((row): SubjectReading => {
    const limitOf = (place: number) => (row[place] === window_units_max ? null : row[place]!);
    const reading = (kind: WindowKind, place: number) => ({
      ...windows[kind],
      limit: limitOf(1 + place),
      used: row[5 + place]!,
      held: row[8 + place]!,
    });
    return {
      subject: row[0] === 0 ? "key" : "team",
      windows: { session: reading("session", 0), week: reading("week", 1), month: reading("month", 2) },
      concurrentRequests: row[4] ?? null,
      running: row[11]!,
    };
  });
  return { subjects };
}

function extraOf(row: AnswerRow): ExtraReading {
  return { enabled: row.extra_enabled, capUnits: row.extra_cap, used: row.extra_used, held: row.extra_held };
}

/** Which windows lack room for the least hold; where extra usage is only reserved, they may be full of settled use. */
function fullKinds(command: Admit, answer: "exhausted" | "reserved", windows: WindowReadings): WindowKind[] {
  const least = command.inputUnits + command.outputTokens_min * command.prices.output;
  return windowKinds
    .filter((kind) => {
      const { limit, used, held } = windows[kind];
      return (limit ?? window_units_max) - used - (answer === "reserved" ? held : 0) < least;
    })
    .sort((a, b) => windows[b].resetAt.getTime() - windows[a].resetAt.getTime());
}

function readingsOf(row: AnswerRow, limits: UsageLimits): WindowReadings {
  const reading = (kind: WindowKind) => ({
    kind,
    limit: limits[kind],
    used: row[`${kind}_used`],
    held: row[`${kind}_held`],
    startsAt: row[`${kind}_starts_at`],
    resetAt: row[`${kind}_ends_at`],
  });
  return { session: reading("session"), week: reading("week"), month: reading("month") };
}
