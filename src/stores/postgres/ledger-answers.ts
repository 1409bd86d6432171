/**
 * Reads the answer of `usage_batch`, one JSON text for a batch. A row of columns for each command
 * would take the driver longer than the command takes the ledger.
 */
import { idOf } from "../../core/store/ids.ts";
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
  window_nanos_max,
  windowKinds,
} from "../../core/store/ledger.ts";
import { overPlan } from "../../core/store/over-plan.ts";
import { DatabaseError } from "./database-error.ts";

type Numbers = (number | null)[];
/**
 * Starts and ends of the three windows, the use of the four kinds, the cap of extra usage, and the organization's own limits
 * and its raise, of the windows and of requests at a time; empty: it has none.
 */
type Over = [own?: Numbers, raise?: Numbers];
type Organization = [times: number[], used: number[], isExtra: boolean, extraCap: number | null, ...over: Over];
type Grant = [nanos: number, outputTokens: number, source: BillingSource, team?: string];
/** An organization by its number in the batch; held nanos of the four kinds; the limited key, person and team. */
type Admitted = [organization: Organization | number, held: number[], subjects: Numbers[] | null, ...Grant];
type Row = [position: number, word: string, ...Admitted] | [position: number, word: string, nanos: number];
type Batch = [at_ms: number, locks_us: number, organizations: (Organization | null)[], ...rows: Row[]];

export interface Answered {
  /** The answers, each in its command's place. */
  answers: Answer[];
  /** How long the batch waited for the locks of its organizations. */
  locks_ms: number;
}

export function decodeAnswers(commands: readonly Command[], text: string): Answered {
  const [at_ms, locks_us, organizations, ...rows] = JSON.parse(text) as Batch;
  const at = new Date(at_ms);
  const answers = new Array<Answer | undefined>(commands.length);
  for (const row of rows) answers[row[0]] = decoded(commands[row[0]]!, row, organizations, at);
  for (let position = 0; position < commands.length; position++) {
    if (!answers[position]) throw new Error(`the ledger left command ${position} of a batch without an answer`);
  }
  return { answers: answers as Answer[], locks_ms: locks_us / 1000 };
}

function decoded(command: Command, [, word, ...rest]: Row, organizations: Batch[2], at: Date): Answer {
  switch (command.verb) {
    case "admit":
      return admitAnswer(command, word, rest as unknown as Admitted, organizations, at);
    case "grow":
      return word === "granted"
        ? { answer: word, nanos: exact(rest[0] as number) }
        : { answer: word === "full" ? word : "gone" };
    case "checkpoint":
      return { answer: word === "extended" ? word : "gone" };
    case "settle": {
      if (word !== "settled") return { answer: "already" };
      const charged = exact(rest[0] as number);
      return { answer: word, charged, uncharged: command.nanos - charged };
    }
  }
}

function admitAnswer(command: Admit, word: string, admitted: Admitted, organizations: Batch[2], at: Date): AdmitAnswer {
  if (word === "over" || word === "unknown") return { answer: word };
  const [reference, held, rows, nanos, outputTokens, source, team] = admitted;
  const organization = typeof reference === "number" ? organizations[reference - 1]! : reference;
  const windows = {
    session: windowOf(command, organization, held, "session", 0),
    week: windowOf(command, organization, held, "week", 1),
    month: windowOf(command, organization, held, "month", 2),
  };
  const subjects = rows === null ? {} : { subjects: rows.map((row) => subjectOf(row, windows)) };
  if (word === "granted") {
    const teamId = team === undefined ? {} : { teamId: idOf(team, "team_") };
    return {
      answer: word,
      nanos: exact(nanos),
      outputTokens: exact(outputTokens),
      source,
      windows,
      at,
      ...subjects,
      ...teamId,
    };
  }
  if (word === "concurrency") {
    const concurrentRequests = overPlan(command.limits.concurrentRequests, organization[4]?.[3], organization[5]?.[3]);
    const other = concurrentRequests === command.limits.concurrentRequests ? {} : { concurrentRequests };
    return { answer: word, windows, ...subjects, ...other, at };
  }
  const answer = word === "reserved" ? word : "exhausted";
  const kinds = fullKinds(command, answer, windows);
  for (const kind of kinds) windows[kind].limit ??= window_nanos_max;
  const [, used, isExtra, extraCap] = organization;
  const capNanos = extraCap === null ? null : exact(extraCap);
  const extra: ExtraReading = { enabled: isExtra, capNanos, used: exact(used[3]!), held: exact(held[3]!) };
  return { answer, kinds, windows, ...subjects, extra, at };
}

function windowOf(
  { limits }: Admit,
  [times, used, , , own, raise]: Organization,
  held: number[],
  kind: WindowKind,
  place: number,
): WindowReading {
  return {
    kind,
    limit: overPlan(limits[kind], own?.[place], raise?.[place]),
    used: exact(used[place]!),
    held: exact(held[place]!),
    startsAt: new Date(times[place]!),
    resetAt: new Date(times[3 + place]!),
  };
}

/** The other subjects of a request, in the order in which `usage_chain` names them. */
const subjectNames = ["key", "person", "team"] as const;

/** A limited key, person or team. Its windows begin and end with the organization's. */
function subjectOf(row: Numbers, windows: WindowReadings): SubjectReading {
  const limitOf = (place: number) => (row[place] === window_nanos_max ? null : row[place]!);
  const reading = (kind: WindowKind, place: number) => ({
    ...windows[kind],
    limit: limitOf(1 + place),
    used: exact(row[5 + place]!),
    held: exact(row[8 + place]!),
  });
  return {
    subject: subjectNames[row[0]!]!,
    windows: { session: reading("session", 0), week: reading("week", 1), month: reading("month", 2) },
    concurrentRequests: row[4] ?? null,
    running: row[11]!,
  };
}

/** The windows that lack room for the least hold. If extra usage is only reserved, they may be full of settled use. */
function fullKinds(command: Admit, answer: "exhausted" | "reserved", windows: WindowReadings): WindowKind[] {
  const least = command.inputNanos + command.outputTokens_min * command.prices.output;
  return windowKinds
    .filter((kind) => {
      const { limit, used, held } = windows[kind];
      return (limit ?? window_nanos_max) - used - (answer === "reserved" ? held : 0) < least;
    })
    .sort((a, b) => windows[b].resetAt.getTime() - windows[a].resetAt.getTime());
}

/** JSON rounds numbers beyond 2^53. */
function exact(nanos: number): number {
  if (!Number.isSafeInteger(nanos))
    throw new DatabaseError(`the ledger answered ${nanos}, which is not exact`, "22003");
  return nanos;
}
