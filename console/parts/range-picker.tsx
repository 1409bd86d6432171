/**
 * The time range of a page: the ranges that people choose most, any two days, and the time zone of the days. The
 * address keeps it.
 */
import { query, replaceQuery } from "../core/address.ts";
import { presetsOf, type Range, rangeOf } from "../core/range.ts";
import { daysAfter, Zone } from "../core/zone.ts";
import { Labelled, Select } from "./select.tsx";

interface Spanned {
  range: Range;
  /**
   * The name of the chosen time zone, if its days do not begin at full hours of UTC, so that no report can be divided
   * into them. Null: reports can use its days.
   */
  withoutDays: string | null;
}

export const readersZone = () => new Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

/** The time range in the address, in the zone that it names, or otherwise in the reader's. */
export function spanOfAddress(now_ms: number): Spanned {
  const [from, to] = [query.value.get("from"), query.value.get("to")];
  return spanned({ from, to, zone: zoneNamed(query.value.get("zone") ?? readersZone()), now_ms });
}

/** This month in the reader's zone, which the page Usage shows where its address names no time. */
export const readersMonth = (now_ms: number): Range =>
  spanned({ from: null, to: null, zone: zoneNamed(readersZone()), now_ms }).range;

function spanned(asked: Parameters<typeof rangeOf>[0]): Spanned {
  const { zone } = asked;
  const range = rangeOf(asked);
  if (zone.hasFullHours(range.from_ms, range.to_ms)) return { range, withoutDays: null };
  return { range: rangeOf({ ...asked, zone: new Zone("UTC") }), withoutDays: zone.name };
}

function zoneNamed(name: string): Zone {
  try {
    return new Zone(name);
  } catch {
    return new Zone("UTC");
  }
}

export function RangePicker({ of: { range, withoutDays }, now_ms }: { of: Spanned; now_ms: number }) {
  const { zone, from_ms, to_ms } = range;
  const own = readersZone();
  const zones = [...new Set([own, zone.name, "UTC"])].filter((one) => one !== withoutDays);
  const [from, to] = [query.value.get("from"), query.value.get("to")];
  const last = zone.dateOf(to_ms - 1);
  const chosen = (changes: Record<string, string | null>) => replaceQuery({ ...changes, rows: null });
  return (
    <div class="range">
      <fieldset class="presets" aria-label="Period">
        {presetsOf(zone.dateOf(now_ms)).map((preset) => (
          <button
            key={preset.name}
            type="button"
            class="small"
            aria-pressed={from === preset.from && to === preset.to}
            onClick={() => chosen({ from: preset.from, to: preset.to })}
          >
            {preset.name}
          </button>
        ))}
      </fieldset>
      <Day
        label="From"
        value={zone.dateOf(from_ms)}
        max={last}
        change={(date) => chosen({ from: date, to: daysAfter(last, 1) })}
      />
      <Day
        label="To, including"
        value={last}
        min={zone.dateOf(from_ms)}
        change={(date) => chosen({ from: zone.dateOf(from_ms), to: daysAfter(date, 1) })}
      />
      {zones.length > 1 ? (
        <Labelled label="Days of">
          {(id) => (
            <Select
              id={id}
              value={zone.name}
              options={zones}
              change={(name) => replaceQuery({ zone: name === own ? null : name })}
            />
          )}
        </Labelled>
      ) : (
        <span class="fine">
          {withoutDays === null
            ? `Days are those of ${zone.name}.`
            : `Days are those of UTC: in ${withoutDays} they do not begin at a full hour, by which usage is added up.`}
        </span>
      )}
    </div>
  );
}

interface DayProps {
  label: string;
  value: string;
  min?: string;
  max?: string;
  change: (date: string) => void;
}

function Day({ label, value, min, max, change }: DayProps) {
  return (
    <Labelled label={label}>
      {(id) => (
        <input
          id={id}
          type="date"
          value={value}
          min={min}
          max={max}
          required
          onChange={({ currentTarget }) =>
            currentTarget.value !== "" && currentTarget.validity.valid && change(currentTarget.value)
          }
        />
      )}
    </Labelled>
  );
}
