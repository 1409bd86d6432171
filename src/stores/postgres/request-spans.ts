/** Spans of request ids, which begin with their time in milliseconds. Pure. */
import type { ListedRequest } from "../../admin/store/request-list.ts";

/** A span from `since` up to before `until` (null: to the newest). Both are dashed UUIDs, which sort as text. */
export interface Span {
  since: string;
  until: string | null;
}

/** The requests of one source down to the id `reached`, the newest first. */
export interface FoundRequests {
  items: ListedRequest[];
  reached: string;
}

/** The least UUID of this millisecond or later. */
export function uuidAt(time_ms: number): string {
  const hex = Math.max(0, Math.floor(time_ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

/** The overlap of two spans; null if there is none. */
export function common(one: Span, other: Span): Span | null {
  const [, since] = [one.since, other.since].toSorted() as [string, string];
  const until = one.until === null || (other.until !== null && other.until < one.until) ? other.until : one.until;
  return until !== null && until <= since ? null : { since, until };
}

/** Joins spans that touch. Argument and result have the newest first. */
export function joinedSpans(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const span of spans) {
    const last = all.at(-1);
    if (last && span.until !== null && span.until >= last.since) last.since = span.since;
    else all.push({ ...span });
  }
  return all;
}
