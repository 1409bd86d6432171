/**
 * What `usage_batch` (migration 0004) answers: one JSON text for a batch. A driver takes longer over a row of columns for
 * each command than the ledger over the command.
 */
import { idOf } from "../store/ids.ts";
import {
  type Admit,
  type AdmitAnswer,
  type Answer,
  type BillingSource,
  type Command,
  type ExtraReading,
  type SubjectReading,
  type WindowKind,
  type WindowReading,
  type WindowReadings,
  window_units_max,
  windowKinds,
} from "../store/ledger.ts";
import { DatabaseError } from "./database.ts";

type Numbers = (number | null)[];
/** When the three windows begin, and when they end; by the four kinds, what is used and held of each just before it. */
type Reading = [times: number[], used: number[], held: number[], isExtra: boolean, extraCap: number | null];
/** The readings of an admission, the rows of its limited key and team, its grant, and its key's team. */
type Admitted = [...Reading, subjects: Numbers[] | null, ...Grant, team?: string];
type Grant = [units: number, outputTokens: number, source: BillingSource];
type Row = [position: number, word: string, ...Admitted] | [position: number, word: string, units: number];

export interface Answered {
  /** Each in its command's place. */
  answers: Answer[];
  /** How long the batch waited for the locks of its organizations. */
  locks_ms: number;
}

export function decodeAnswers(commands: readonly Command[], text: string): Answered {
  const [at_ms, locks_us, ...rows] = JSON.parse(text) as [number, number, ...Row[]];
  const at = new Date(at_ms);
  const answers = new Array<Answer | undefined>(commands.length);
  for (const row of rows) answers[row[0]] = decoded(commands[row[0]]!, row, at);
  for (let position = 0; position < commands.length; position++) {
    if (!answers[position]) throw new Error(`the ledger left command ${position} of a batch without an answer`);
  }
  return { answers: answers as Answer[], locks_ms: locks_us / 1000 };
}

function decoded(command: Command, [, word, ...rest]: Row, at: Date): Answer {
  switch (command.verb) {
    case "admit":
      return admitAnswer(command, word, rest as unknown as Admitted, at);
    case "grow":
      return word === "granted"
        ? { answer: word, units: exact(rest[0] as number) }
        : { answer: word === "full" ? word : "gone" };
    case "checkpoint":
      return { answer: word === "extended" ? word : "gone" };
    case "settle": {
      if (word !== "settled") return { answer: "already" };
      const charged = exact(rest[0] as number);
      return { answer: word, charged, uncharged: command.units - charged };
    }
  }
}

function admitAnswer(command: Admit, word: string, admitted: Admitted, at: Date): AdmitAnswer {
  if (word === "over" || word === "unknown") return { answer: word };
  const [, used, held, isExtra, extraCap, rows, units, outputTokens, source, team] = admitted;
  const windows = {
    session: windowOf(command, admitted, "session", 0),
    week: windowOf(command, admitted, "week", 1),
    month: windowOf(command, admitted, "month", 2),
  };
  const subjects = rows === null ? {} : { subjects: subjectsOf(rows, windows) };
  if (word === "granted") {
    const grant = {
      answer: word,
      units: exact(units),
      outputTokens: exact(outputTokens),
      source,
      windows,
      at,
    } as const;
    const teamId = team === undefined ? {} : { teamId: idOf(team, "team_") };
    return { ...grant, ...subjects, ...teamId };
  }
  if (word === "concurrency") return { answer: word, windows, ...subjects, at };
  const answer = word === "reserved" ? word : "exhausted";
  const kinds = fullKinds(command, answer, windows);
  for (const kind of kinds) windows[kind].limit ??= window_units_max;
  const capUnits = extraCap === null ? null : exact(extraCap);
  const extra: ExtraReading = { enabled: isExtra, capUnits, used: exact(used[3]!), held: exact(held[3]!) };
  return { answer, kinds, windows, ...subjects, extra, at };
}

function windowOf({ limits }: Admit, [times, used, held]: Admitted, kind: WindowKind, place: number): WindowReading {
  return {
    kind,
    limit: limits[kind],
    used: exact(used[place]!),
    held: exact(held[place]!),
    startsAt: new Date(times[place]!),
    resetAt: new Date(times[3 + place]!),
  };
}

const subjectsOf = (rows: readonly Numbers[], windows: WindowReadings) => rows.map((row) => subjectOf(row, windows));

/** A limited key or team; its windows begin and end as the organization's. */
function subjectOf(row: Numbers, windows: WindowReadings): SubjectReading {
  const limitOf = (place: number) => (row[place] === window_units_max ? null : row[place]!);
  const reading = (kind: WindowKind, place: number) => ({
    ...windows[kind],
    limit: limitOf(1 + place),
    used: exact(row[5 + place]!),
    held: exact(row[8 + place]!),
  });
  return {
    subject: row[0] === 0 ? "key" : "team",
    windows: { session: reading("session", 0), week: reading("week", 1), month: reading("month", 2) },
    concurrentRequests: row[4] ?? null,
    running: row[11]!,
  };
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

/** JSON rounds what is beyond 2^53. */
function exact(units: number): number {
  if (!Number.isSafeInteger(units))
    throw new DatabaseError(`the ledger answered ${units}, which is not exact`, "22003");
  return units;
}
