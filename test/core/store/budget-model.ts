// A reference model, in memory, of the limits of keys, people and teams: the amounts that each has used and held in the
// windows of its organization.

import type { SubjectReading, UsageLimits, WindowKind } from "../../../src/core/store/ledger.ts";
import { type Interval, limitIn } from "./windows-model.ts";

/**
 * A subject of limits: a key, person or team, or, for a pattern of models, one of these or an organization. `limits`
 * are the limits in force at the time of reading.
 */
export interface ModelSubject extends Pick<SubjectReading, "subject" | "models"> {
  id: string;
  limits: UsageLimits;
  /**
   * Whether the subject has been given a limit by now. If this is absent, the limit was set before any use. Use from
   * before the limit counts in any case.
   */
  isLimited?(): boolean;
}

/**
 * The limits, teams and raises that are set in an organization at a moment. The object is never changed: each change
 * makes a new one.
 */
export interface OwnLimits {
  /** The key is the id of a key, a person or a team; the value, its limits. */
  limits: ReadonlyMap<string, UsageLimits>;
  /** The key is a key's id; the value, the team that the key is in, or null. */
  teams: ReadonlyMap<string, string | null>;
  /** The settings from which the limits of people follow, if there are people. */
  people?: ModelPeople;
  /** The key is the id of a key, a person, a team or the organization; the value, its raise. */
  raises?: ReadonlyMap<string, ModelRaise>;
}

/** The limits and memberships that are set for the people of an organization. */
export interface ModelPeople {
  /** The key is a person; the value, the person's own limits. */
  own: ReadonlyMap<string, UsageLimits>;
  /** The key is a team or an organization; the value, the limits of each of its members without limits of their own. */
  defaults: ReadonlyMap<string, UsageLimits>;
  /** The key is a person who is a member; the value, the person's team, or null. */
  memberships: ReadonlyMap<string, string | null>;
}

/**
 * The limits that count for a person. Each limit is the person's own, else the one that their team sets for its
 * members, else the organization's, else none.
 */
export function limitsOfMember({ own, defaults, memberships }: ModelPeople, organizationId: string, id: string) {
  const values = [own.get(id), defaults.get(memberships.get(id) ?? ""), defaults.get(organizationId)];
  const limits = (Object.keys(unlimited) as (keyof UsageLimits)[]).map((name) => {
    return [name, values.map((value) => value?.[name] ?? null).find((limit) => limit !== null) ?? null];
  });
  return Object.fromEntries(limits) as UsageLimits;
}

const unlimited: UsageLimits = { session: null, week: null, month: null, concurrentRequests: null };

/** A raise: limits that count until an instant, on top of a subject's own. A limit of null raises nothing. */
export interface ModelRaise {
  limits: UsageLimits;
  until_ms: number;
}

/** The limits in force at this instant: a raise never lowers a limit, and what is not limited stays unlimited. */
export function underRaise(base: UsageLimits, raise: ModelRaise | null | undefined, now_ms: number): UsageLimits {
  if (!raise || now_ms >= raise.until_ms) return base;
  const of = (name: keyof UsageLimits) => {
    const [limit, raised] = [base[name], raise.limits[name]];
    return limit !== null && raised !== null && raised > limit ? raised : limit;
  };
  return {
    session: of("session"),
    week: of("week"),
    month: of("month"),
    concurrentRequests: of("concurrentRequests"),
  };
}

interface OwnWindow extends Interval {
  kind: WindowKind;
  total: { used: number; held: number };
  limit(): number;
}
/** A subject, other than the organization, against which a request counts, with the subject's windows. */
export interface Own {
  subject: ModelSubject;
  windows: OwnWindow[];
}

const kinds: readonly WindowKind[] = ["session", "week", "month"];
const infinite = (limit: number | null): number => limit ?? Number.POSITIVE_INFINITY;

export class BudgetModel {
  /** The key is the id of a subject; the value, its windows. */
  readonly #windows = new Map<string, OwnWindow[]>();

  /**
   * The windows of each subject that match the organization's current ones, in the order of `subjects`: the key comes
   * first.
   */
  of(subjects: readonly ModelSubject[], windows: Record<WindowKind, Interval>): Own[] {
    return subjects.map((subject) => ({
      subject,
      windows: kinds.map((kind) => this.#window(subject, kind, windows[kind])),
    }));
  }

  /** Every window of a subject that was ever read or charged. */
  windows(id: string): readonly OwnWindow[] {
    return this.#windows.get(id) ?? [];
  }

  #window(subject: ModelSubject, kind: WindowKind, { startsAt_ms, endsAt_ms, wholeAt_ms }: Interval): OwnWindow {
    const windows = this.#windows.get(subject.id) ?? [];
    this.#windows.set(subject.id, windows);
    const found = windows.find((one) => one.kind === kind && one.startsAt_ms === startsAt_ms);
    if (found) return Object.assign(found, { endsAt_ms, wholeAt_ms });
    const total = { used: 0, held: 0 };
    const limit = () => limitIn(infinite(subject.limits[kind]), made);
    const made: OwnWindow = { kind, startsAt_ms, endsAt_ms, wholeAt_ms, total, limit };
    windows.push(made);
    return made;
  }
}

/** The nanos that the subjects' limits leave: `unused` after settled use, `free` after settled use and holds. */
export function roomOf(own: readonly Own[]): { unused: number; free: number } {
  const windows = own.flatMap((one) => one.windows);
  return {
    unused: Math.min(Number.POSITIVE_INFINITY, ...windows.map(({ limit, total }) => limit() - total.used)),
    free: Math.min(Number.POSITIVE_INFINITY, ...windows.map(({ limit, total }) => limit() - total.used - total.held)),
  };
}

/**
 * Whether a subject runs as many requests as its limit allows. `holds`: all running requests, each with the subjects
 * against which it counts.
 */
export function isCrowded(own: readonly Own[], holds: Iterable<{ own: readonly Own[] }>): boolean {
  const running = runningOf(holds);
  return own.some(({ subject: { id, limits } }) => (running.get(id) ?? 0) >= infinite(limits.concurrentRequests));
}

export function runningOf(holds: Iterable<{ own: readonly Own[] }>): Map<string, number> {
  const running = new Map<string, number>();
  for (const hold of holds)
    for (const { subject } of hold.own) running.set(subject.id, (running.get(subject.id) ?? 0) + 1);
  return running;
}

/** The team against which a request counts, in the form in which the ledger's answers have it. */
export function teamOf(own: readonly Own[]): { teamId?: string } {
  const team = own.find(({ subject }) => subject.subject === "team" && subject.models === undefined);
  return team ? { teamId: team.subject.id } : {};
}

/** The span of a window, and its limit, in the form in which the ledger's answers have them. */
export function spanRead(limit: number | null, interval: Interval) {
  const { startsAt_ms, endsAt_ms, wholeAt_ms } = interval;
  return {
    limit: limit === null ? null : limitIn(limit, interval),
    startsAt: new Date(startsAt_ms),
    resetAt: new Date(endsAt_ms),
    ...(wholeAt_ms !== undefined && { isShort: true as const }),
  };
}

export function subjectsRead(
  own: readonly Own[],
  holds: Iterable<{ own: readonly Own[] }>,
): { subjects?: SubjectReading[] } {
  const seen = own.filter(({ subject }) => subject.isLimited?.() !== false);
  if (seen.length === 0) return {};
  const running = runningOf(holds);
  const subjects = seen.map(({ subject: { id, subject, models, limits }, windows }): SubjectReading => {
    const reading = (place: number) => {
      const window = windows[place]!;
      return { kind: window.kind, ...window.total, ...spanRead(limits[window.kind], window) };
    };
    return {
      subject,
      ...(models !== undefined && { models }),
      windows: { session: reading(0), week: reading(1), month: reading(2) },
      concurrentRequests: limits.concurrentRequests,
      running: running.get(id) ?? 0,
    };
  });
  return { subjects };
}
