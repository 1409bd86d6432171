/**
 * Decides whose limit a refusal names: the organization's, the team's, the person's or the key's, for all models or
 * some. A refusal names the limit without room whose window resets last, because any shorter wait is useless; of equal
 * limits it names the narrowest, which is the easiest to raise: docs/design/usage.md, Budgets. Pure.
 */
import { type Limited, limitedOf, narrowestFirst } from "../store/budget.ts";
import {
  type AdmitAnswer,
  type ExtraReading,
  type FullLimit,
  type Granted,
  type Shortage,
  type StoppingLimit,
  type SubjectReading,
  type WindowKind,
  type WindowReadings,
  windowKinds,
} from "../store/ledger.ts";

/** A limit that is smaller than the least amount that has to be reserved for a request, so that waiting is in vain. */
export interface WholeLimit extends Limited {
  limit: WindowKind | "tokens_per_minute";
  /** The size of the limit: nanos of a window, or tokens of a minute. */
  value: number;
  /** The extra usage that relieves the organization's windows; absent for every other limit. */
  extra?: { enabled: boolean; capNanos: number | null; available: number };
}

/**
 * The windows that lack room for a request (a shortage), with the subject whose limits they are. The `windows` and
 * `kinds` are those of the subject, not of the organization.
 */
export interface Limiter extends Shortage, Limited {}

type Short = Extract<AdmitAnswer, { answer: "exhausted" | "reserved" }>;

/**
 * The extra usage of subjects other than the organization: none, because extra usage relieves only the organization's
 * windows for all models.
 */
const noExtra: ExtraReading = Object.freeze({ enabled: false, capNanos: null, used: 0, held: 0 });

export function limiterOf(answer: Short, leastNanos: number): Limiter {
  const withHeld = answer.answer === "reserved";
  const { windows, extra, kinds, at } = answer;
  const owners = limitsOf(answer).map(
    (one): Limiter => ({
      ...limitedOf(one),
      windows: one.windows,
      kinds: fullKinds(one.windows, leastNanos, withHeld),
      extra: noExtra,
      at,
    }),
  );
  const extraRoom = extra.enabled ? roomIn({ ...extra, limit: extra.capNanos }, withHeld) : Number.NEGATIVE_INFINITY;
  const organization: Limiter = { limitedBy: "organization", windows, kinds, extra, at };
  if (extraRoom < leastNanos) owners.push(organization);
  const full = owners.filter((one) => one.kinds.length > 0);
  return full.reduce((last, one) => (resetsAt_ms(one) > resetsAt_ms(last) ? one : last), full[0] ?? organization);
}

/**
 * The smallest window limit that is below the least hold of the request, so that the request would not fit even into an
 * unused window, and no reset helps. Of equal limits, the narrowest subject's. The organization's windows count only if
 * extra usage cannot take the request either.
 */
export function smallestBelow(shortage: Shortage, leastNanos: number): WholeLimit | null {
  const { windows, extra } = shortage;
  const whole = limitsOf(shortage).flatMap((one) => wholeLimits(one.windows, limitedOf(one)));
  if (!extra.enabled || (!windows.month.isShort && (extra.capNanos ?? Infinity) < leastNanos)) {
    const { enabled, capNanos } = extra;
    const relief = { enabled, capNanos, available: extraAvailable(extra) };
    whole.push(...wholeLimits(windows, { limitedBy: "organization", extra: relief }));
  }
  const below = whole.filter(({ value }) => value < leastNanos);
  return below.reduce<WholeLimit | null>((least, one) => (least && least.value <= one.value ? least : one), null);
}

/**
 * The limit that ends a running answer: of the limits without room, the one that resets last; of equal limits, the
 * narrowest subject's.
 */
export function stoppingLimit(full: readonly FullLimit[]): StoppingLimit {
  const [first, ...others] = full.toSorted(narrowestFirst);
  if (!first) return { limitedBy: "organization", window: "extra" };
  const last = others.reduce((last, one) => (one.resetAt > last.resetAt ? one : last), first);
  return { ...limitedOf(last), window: last.window };
}

/** The limit that had the least room after a grant; of equal limits, the narrowest subject's. */
export function tightestLimit(granted: Granted): StoppingLimit {
  const { windows, source } = granted;
  const rooms = [
    ...limitsOf(granted),
    ...(source === "plan" ? [{ limitedBy: "organization" as const, windows }] : []),
  ].flatMap((one) =>
    windowKinds.map((window) => ({ ...limitedOf(one), window, room: roomIn(one.windows[window], true) })),
  );
  const extra = { limitedBy: "organization", window: "extra", room: Number.MAX_SAFE_INTEGER } as const;
  const { room: _, ...least } = rooms.reduce((least, one) => (one.room < least.room ? one : least), rooms[0] ?? extra);
  return least;
}

/** The nanos that extra usage (use beyond the plan's windows, up to a cap) could still take. */
export function extraAvailable({ enabled, capNanos, used, held }: ExtraReading): number {
  return enabled ? Math.max(0, (capNanos ?? Number.MAX_SAFE_INTEGER) - used - held) : 0;
}

/**
 * The narrowest subject (key, person or team) that already runs as many requests at a time as it may. Null: no such
 * subject does, so the organization does.
 */
export function crowdedBy(answer: Pick<Shortage, "subjects">): (Limited & SubjectReading) | null {
  return (
    limitsOf(answer).find(({ running, concurrentRequests }) => running >= (concurrentRequests ?? Infinity)) ?? null
  );
}

/** The subjects other than the organization (key, person, team), with their limits; the narrowest first. */
function limitsOf({ subjects = [] }: Pick<Granted, "subjects">): (Limited & SubjectReading)[] {
  return subjects.map((one) => ({ ...one, limitedBy: one.subject })).sort(narrowestFirst);
}

/**
 * The limits of windows of full length. A shortened window has only a share of the limit, and the next window may have
 * room for the request.
 */
function wholeLimits(windows: WindowReadings, owner: Limited & Pick<WholeLimit, "extra">): WholeLimit[] {
  return windowKinds.flatMap((limit) => {
    const { limit: value, isShort } = windows[limit];
    return value === null || isShort ? [] : [{ ...owner, limit, value }];
  });
}

const resetsAt_ms = ({ kinds, windows }: Limiter) => Math.max(...kinds.map((kind) => windows[kind].resetAt.getTime()));

/** The kinds of those windows that have no room, beginning with the one that resets last. */
function fullKinds(windows: WindowReadings, leastNanos: number, withHeld: boolean): WindowKind[] {
  return windowKinds
    .filter((kind) => roomIn(windows[kind], withHeld) < leastNanos)
    .sort((a, b) => windows[b].resetAt.getTime() - windows[a].resetAt.getTime());
}

function roomIn({ limit, used, held }: { limit: number | null; used: number; held: number }, withHeld: boolean) {
  return (limit ?? Number.MAX_SAFE_INTEGER) - used - (withHeld ? held : 0);
}
