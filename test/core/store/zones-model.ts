// A reference model of when local days begin, from the list of a zone's offset changes (moment-timezone, with its own
// zone data), for the store's calendars.

import moment from "moment-timezone";

/** A time during which a zone's offset, which is added to UTC, does not change. */
interface Span {
  from_ms: number;
  to_ms: number;
  offset_ms: number;
}

const spansOfZones = new Map<string, Span[]>();

function spansOf(zone: string): Span[] {
  const known = spansOfZones.get(zone);
  if (known) return known;
  const found = moment.tz.zone(zone);
  if (!found) throw new RangeError(`there is no zone ${zone}`);
  const { untils, offsets } = found;
  const spans = offsets.map((minutes, index) => ({
    from_ms: untils[index - 1] ?? Number.NEGATIVE_INFINITY,
    to_ms: untils[index] ?? Number.POSITIVE_INFINITY,
    offset_ms: -Math.round(minutes * 60) * 1000,
  }));
  spansOfZones.set(zone, spans);
  return spans;
}

/** The first instant whose local date is the given one or later. The date is given as its midnight, as if in UTC. */
export function dayBegins(zone: string, midnight_ms: number): number {
  for (const { from_ms, to_ms, offset_ms } of spansOf(zone)) {
    const at_ms = Math.max(from_ms, midnight_ms - offset_ms);
    if (at_ms < to_ms) return at_ms;
  }
  throw new RangeError("no day begins so late");
}

/** The local date of an instant: its midnight, as if in UTC. */
export function localDate(zone: string, instant_ms: number): number {
  const span = spansOf(zone).find(({ to_ms }) => instant_ms < to_ms)!;
  return Math.floor((instant_ms + span.offset_ms) / 86_400_000) * 86_400_000;
}
