/**
 * Reads the result of `usage_batch`, one JSON text for a batch. A row of columns for each command would take the driver
 * longer than the command takes the ledger.
 */

import { costOf } from "../../core/inference/money.ts";
import { idOf } from "../../core/store/ids.ts";
import {
  type Admit,
  type AdmitAnswer,
  type BillingSource,
  type Command,
  type ExtraReading,
  type FullLimit,
  type LedgerAnswer,
  type SubjectReading,
  type WindowKind,
  type WindowReading,
  type WindowReadings,
  window_nanos_max,
  windowKinds,
} from "../../core/store/ledger.ts";
import { overPlan } from "../../core/store/rates.ts";
import { DatabaseError } from "./database-error.ts";

type Numbers = (number | null)[];
/**
 * For a window that is shorter because the calendar changed: when it would have begun in its full length. Null if it
 * has its full length.
 */
type WholeStart = number | null | undefined;
/**
 * A limited subject as one admission saw it: its number in the batch; the nanos that its requests hold in the three
 * windows; and how many of its requests run. The first row of a subject in a batch also has the values that are the
 * same for all admissions.
 */
type Subject = [number: number, held: Three, running: number, ...seen: SeenByAll | []];
/**
 * Values of a subject that are the same for all admissions of a batch: whose limits they are; the limits of the three
 * windows and of concurrent requests; the use of the windows; and, for limits for models, the pattern of the models.
 */
type SeenByAll = [whose: number, limits: Four, used: Three, models?: string];
type Three = [session: number, week: number, month: number];
type Four = [...Three, concurrentRequests: number | null];
/**
 * The values of an organization: starts and ends of the three windows; the use of the three windows and of extra usage;
 * whether extra usage is enabled, and its cap; the organization's own limits of windows and concurrent requests, and
 * their raise (a temporary increase), empty if it has none; and for a shortened week or month, where it would have
 * begun.
 */
type Organization = [
  times: number[],
  used: number[],
  isExtra: boolean,
  extraCap: number | null,
  own?: Numbers,
  raise?: Numbers,
  wholes?: WholeStart[],
];
type Grant = [nanos: number, outputTokens: number, source: BillingSource, team?: string];
/**
 * The findings of an admission: the number of the organization in the batch; the nanos held in the three windows and in
 * extra usage; the limited subjects; and for a refusal the zone of the organization's calendar.
 */
type Admitted = [
  organization: Organization | number,
  held: number[],
  subjects: Subject[] | null,
  ...rest: Grant | [zone?: string],
];
/**
 * A limit that has no room for the request: whose limit it is, its window by number, when the window ends, and, for a
 * limit for models, the pattern of the models.
 */
type Full = [whose: number, kind: number, endsAt_ms: number, models?: string];
type Row =
  | [position: number, word: string, ...Admitted]
  | [position: number, word: string, nanos: number]
  | [position: number, word: string, ...Full[]];
type Batch = [at_ms: number, locks_us: number, organizations: (Organization | null)[], ...rows: Row[]];
/** Facts that all admissions of a batch share. The key of `subjects` is the number of a subject in the batch. */
interface Common {
  at: Date;
  organizations: Batch[2];
  subjects: Map<number, SeenByAll>;
}

export interface BatchAnswers {
  /** The answers in the order of the commands. */
  answers: LedgerAnswer[];
  /** How long the batch waited for the locks of its organizations. */
  locks_ms: number;
}

export function decodeAnswers(commands: readonly Command[], text: string): BatchAnswers {
  const [at_ms, locks_us, organizations, ...rows] = JSON.parse(text) as Batch;
  const common: Common = { at: new Date(at_ms), organizations, subjects: new Map() };
  const answers = new Array<LedgerAnswer | undefined>(commands.length);
  for (const row of rows) answers[row[0]] = decoded(commands[row[0]]!, row, common);
  for (let position = 0; position < commands.length; position++) {
    if (!answers[position]) throw new Error(`the ledger left command ${position} of a batch without an answer`);
  }
  return { answers: answers as LedgerAnswer[], locks_ms: locks_us / 1000 };
}

function decoded(command: Command, [, word, ...rest]: Row, common: Common): LedgerAnswer {
  switch (command.verb) {
    case "admit":
      return admitAnswer(command, word, rest as unknown as Admitted, common);
    case "grow":
      if (word === "full") return { answer: word, limits: (rest as unknown as Full[]).map(fullLimit) };
      return word === "granted" ? { answer: word, nanos: exact(rest[0] as number) } : { answer: "gone" };
    case "checkpoint":
      return { answer: word === "extended" ? word : "gone" };
    case "settle": {
      if (word !== "settled") return { answer: "already" };
      const charged = exact(rest[0] as number);
      return { answer: word, charged, uncharged: command.nanos - charged };
    }
  }
}

function fullLimit([whose, kind, endsAt_ms, models]: Full): FullLimit {
  const window = kind === 3 ? "extra" : windowKinds[kind]!;
  return {
    limitedBy: subjectNames[whose]!,
    ...(models !== undefined && { models }),
    window,
    resetAt: new Date(endsAt_ms),
  };
}

function admitAnswer(command: Admit, word: string, admitted: Admitted, common: Common): AdmitAnswer {
  if (word === "over" || word === "unknown") return { answer: word };
  const [reference, held, rows, ...rest] = admitted;
  const { at } = common;
  const organization = typeof reference === "number" ? common.organizations[reference - 1]! : reference;
  const windows = {
    session: windowOf(command, organization, held, "session", 0),
    week: windowOf(command, organization, held, "week", 1),
    month: windowOf(command, organization, held, "month", 2),
  };
  const subjects = rows === null ? {} : { subjects: rows.map((row) => subjectOf(row, windows, common)) };
  const concurrentRequests = overPlan(command.limits.concurrentRequests, organization[4]?.[3], organization[5]?.[3]);
  const other = concurrentRequests === command.limits.concurrentRequests ? {} : { concurrentRequests };
  if (word === "granted") {
    const [nanos, outputTokens, source, team] = rest as Grant;
    const teamId = team === undefined ? {} : { teamId: idOf(team, "team_") };
    return {
      answer: word,
      nanos: exact(nanos),
      outputTokens: exact(outputTokens),
      source,
      windows,
      at,
      ...subjects,
      ...other,
      ...teamId,
    };
  }
  if (word === "concurrency") return { answer: word, windows, ...subjects, ...other, at };
  const answer = word === "reserved" ? word : "exhausted";
  const kinds = fullKinds(command, answer, windows);
  for (const kind of kinds) windows[kind].limit ??= window_nanos_max;
  const [, used, isExtra, extraCap] = organization;
  const capNanos = extraCap === null ? null : exact(extraCap);
  const extra: ExtraReading = { enabled: isExtra, capNanos, used: exact(used[3]!), held: exact(held[3]!) };
  const [zone] = rest as [zone?: string];
  return { answer, kinds, windows, ...subjects, extra, ...(zone !== undefined && { zone }), at };
}

function windowOf(
  { limits }: Admit,
  [times, used, , , own, raise, wholes]: Organization,
  held: number[],
  kind: WindowKind,
  place: number,
): WindowReading {
  const [starts_ms, ends_ms] = [times[place]!, times[3 + place]!];
  const whole = wholes?.[place - 1];
  return {
    kind,
    limit: inProportion(overPlan(limits[kind], own?.[place], raise?.[place]), starts_ms, ends_ms, whole),
    used: exact(used[place]!),
    held: exact(held[place]!),
    startsAt: new Date(starts_ms),
    resetAt: new Date(ends_ms),
    ...(whole != null && { isShort: true }),
  };
}

/** The limit of a shortened window: its share of the whole limit, rounded up to a whole nano. */
export function inProportion(limit: number | null, starts_ms: number, ends_ms: number, whole: WholeStart) {
  if (limit === null || whole == null) return limit;
  const [length, wholeLength] = [BigInt(ends_ms - starts_ms), BigInt(ends_ms - whole)];
  return Number((BigInt(limit) * length + wholeLength - 1n) / wholeLength);
}

/** The kinds of subjects, in the order of the numbers that stand for them in rows. */
const subjectNames = ["key", "person", "team", "organization"] as const;

/** A limited subject as one admission found it. Its windows begin and end with the organization's. */
function subjectOf(
  [number, held, running, ...seen]: Subject,
  windows: WindowReadings,
  { subjects }: Common,
): SubjectReading {
  if (seen.length !== 0) subjects.set(number, seen);
  const [whose, limits, used, models] = subjects.get(number)!;
  const reading = (kind: WindowKind, place: 0 | 1 | 2) => ({
    ...windows[kind],
    limit: limits[place] === window_nanos_max ? null : limits[place],
    used: exact(used[place]),
    held: exact(held[place]),
  });
  return {
    subject: subjectNames[whose]!,
    ...(models !== undefined && { models }),
    windows: { session: reading("session", 0), week: reading("week", 1), month: reading("month", 2) },
    concurrentRequests: limits[3],
    running,
  };
}

/**
 * The windows that have no room for the least that the request needs. For "exhausted", only settled use counts; for
 * "reserved", what other requests hold counts too. Even for "reserved", settled use alone may fill a window, if it is
 * only extra usage that is reserved.
 */
function fullKinds(command: Admit, answer: "exhausted" | "reserved", windows: WindowReadings): WindowKind[] {
  const least = command.inputNanos + costOf(command.outputTokens_min, command.prices.output);
  return windowKinds
    .filter((kind) => {
      const { limit, used, held } = windows[kind];
      return (limit ?? window_nanos_max) - used - (answer === "reserved" ? held : 0) < least;
    })
    .sort((a, b) => windows[b].resetAt.getTime() - windows[a].resetAt.getTime());
}

/** Returns the number. Throws if it is not exact: JSON rounds beyond 2^53. */
function exact(nanos: number): number {
  if (!Number.isSafeInteger(nanos))
    throw new DatabaseError(`the ledger answered ${nanos}, which is not exact`, "22003");
  return nanos;
}
