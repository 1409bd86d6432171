/** Commands of the ledger as the arguments of `usage_batch` (migration 0002), and its rows as answers. */
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
  type UsageLimits,
  type WindowKind,
  type WindowReadings,
  windowKinds,
} from "../store/ledger.ts";
import { compositeArray, type Field } from "./composite.ts";

/** A row of type `usage_answer`. */
export interface AnswerRow {
  position: number;
  answer: string;
  at: Date;
  units: number | null;
  output_tokens: number | null;
  source: BillingSource | null;
  charged: number | null;
  uncharged: number | null;
  session_starts_at: Date;
  session_ends_at: Date;
  session_used: number;
  session_held: number;
  week_starts_at: Date;
  week_ends_at: Date;
  week_used: number;
  week_held: number;
  month_starts_at: Date;
  month_ends_at: Date;
  month_used: number;
  month_held: number;
  extra_enabled: boolean;
  extra_cap: number | null;
  extra_used: number;
  extra_held: number;
}

/** The four arrays: admits, grows, checkpoints, settles. An id that is none throws: nothing was sent. */
export function encodeBatch(commands: readonly Command[]): string[] {
  const rows: Record<Command["verb"], Field[][]> = { admit: [], grow: [], checkpoint: [], settle: [] };
  for (const [position, command] of commands.entries()) rows[command.verb].push([position, ...fieldsOf(command)]);
  return [rows.admit, rows.grow, rows.checkpoint, rows.settle].map(compositeArray);
}

function fieldsOf(command: Command): Field[] {
  switch (command.verb) {
    case "admit":
      return [
        ...facts(command),
        ...limits(command.limits),
        command.limits.concurrentRequests,
        command.inputUnits,
        command.outputTokens,
        command.outputTokensMin,
        command.leaseMs,
      ];
    case "grow":
      return [...names(command), ...limits(command.limits), command.unitsTotal, command.unitsTotalMin];
    case "checkpoint":
      return [...names(command), command.number, ...usage(command.usage), command.leaseMs];
    case "settle":
      return [
        ...facts(command),
        ...limits(command.limits),
        ...usage(command.usage),
        command.units,
        command.outcome,
        command.stoppedBy,
        command.errorCode,
        command.route?.upstream,
        command.route?.attempts,
        command.route && command.route.firstPartMs !== null ? Math.round(command.route.firstPartMs) : null,
        false,
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
const limits = (one: UsageLimits): Field[] => [one.session, one.week, one.month];
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
  const at = row.at;
  if (row.answer === "granted") {
    return {
      answer: "granted",
      units: row.units!,
      outputTokens: row.output_tokens!,
      source: row.source!,
      windows,
      at,
    };
  }
  if (row.answer === "concurrency") return { answer: "concurrency", windows, at };
  const answer = row.answer === "reserved" ? "reserved" : "exhausted";
  return { answer, kinds: fullKinds(command, answer, windows), windows, extra: extraOf(row), at };
}

export function extraOf(row: AnswerRow): ExtraReading {
  return { enabled: row.extra_enabled, capUnits: row.extra_cap, used: row.extra_used, held: row.extra_held };
}

/** Which windows lack room for the least hold; where extra usage is only reserved, they may be full of settled use. */
function fullKinds(command: Admit, answer: "exhausted" | "reserved", windows: WindowReadings): WindowKind[] {
  const least = command.inputUnits + command.outputTokensMin * command.prices.output;
  return windowKinds
    .filter((kind) => {
      const { limit, used, held } = windows[kind];
      return limit !== null && limit - used - (answer === "reserved" ? held : 0) < least;
    })
    .sort((a, b) => windows[b].resetAt.getTime() - windows[a].resetAt.getTime());
}

export function readingsOf(row: AnswerRow, limitOf: UsageLimits): WindowReadings {
  return {
    session: {
      kind: "session",
      limit: limitOf.session,
      used: row.session_used,
      held: row.session_held,
      startsAt: row.session_starts_at,
      resetAt: row.session_ends_at,
    },
    week: {
      kind: "week",
      limit: limitOf.week,
      used: row.week_used,
      held: row.week_held,
      startsAt: row.week_starts_at,
      resetAt: row.week_ends_at,
    },
    month: {
      kind: "month",
      limit: limitOf.month,
      used: row.month_used,
      held: row.month_held,
      startsAt: row.month_starts_at,
      resetAt: row.month_ends_at,
    },
  };
}
