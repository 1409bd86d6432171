/**
 * The finding of `sluice doctor` about time zones: whether the database and this program know the same rules for the
 * zones of organizations. The database's rules decide when usage windows begin; this program's rules decide how
 * instants are shown.
 */
import { instant, isZone } from "../../core/time/written.ts";
import type { Management } from "../management/verbs.ts";
import { Warning } from "./warning.ts";

const hour_ms = 3_600_000;

/** The finding about time zones in words. Null: no organization has a calendar. */
export async function zonesSay(manage: Management): Promise<string | null> {
  const { data } = await manage.listZones();
  if (data.length === 0) return null;
  const differing = data.flatMap((one) => {
    const at = firstDifference(one);
    return at === null ? [] : [`${one.zone} from ${instant(at)} on`];
  });
  if (differing.length === 0)
    return `the database and this program know the same rules for the coming year of ${data.map(({ zone }) => zone).join(", ")}`;
  throw new Warning(
    `the database and this program know different rules for ${differing.join(", ")}. Windows begin by those of the database. Update the older ones: the time zone data of the database's system (tzdata), or Sluice`,
  );
}

type Zone = Awaited<ReturnType<Management["listZones"]>>["data"][number];

/** The first hour at which this program's UTC offset of the zone differs from the database's. */
function firstDifference({ zone, offsets }: Zone): Date | null {
  if (!isZone(zone)) return offsets[0]?.from ?? null;
  const offset_ms = offsetsIn(zone);
  for (const { from, to, seconds } of offsets)
    for (let at_ms = from.getTime(); at_ms < to.getTime(); at_ms += hour_ms)
      if (offset_ms(new Date(at_ms)) !== seconds * 1000) return new Date(at_ms);
  return null;
}

/**
 * Makes the function that returns the UTC offset of the zone at an instant, in milliseconds (positive if ahead of UTC).
 */
export function offsetsIn(zone: string): (at: Date) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
    hourCycle: "h23",
  });
  return (at) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const local_ms = Date.UTC(part.year!, part.month! - 1, part.day, part.hour, part.minute, part.second);
    return local_ms - Math.floor(at.getTime() / 1000) * 1000;
  };
}
