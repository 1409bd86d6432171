/** Numbers, times and shares as the pages write them. Pure. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A number with all digits and separators. */
export const grouped = (number: number) => whole.format(number);

/** A rate, with more digits if it is small. */
export function rate(number: number): string {
  if (number === 0) return "0";
  return number < 10 ? number.toFixed(1) : whole.format(number);
}

/** A number in short form, from 10,000 in three digits and a letter: `1.25M`. Show `grouped` in the title. */
export const compacted = (number: number) => (Math.abs(number) < 10_000 ? whole.format(number) : short.format(number));

export function percent(share: number): string {
  if (share > 0 && share < 0.1) return "< 0.1 %";
  return `${share < 10 && share > 0 ? share.toFixed(1) : Math.floor(share)} %`;
}

export function milliseconds(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : span(ms);
}

/** A span of time in its two largest units. */
export function span(ms: number): string {
  const s = Math.round(ms / 1000);
  const units = [
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ] as const;
  const first = units.findIndex(([, seconds]) => s >= seconds);
  if (first < 0) return "0 s";
  const parts = units.slice(first, first + 2).map(([unit, seconds], at) => {
    const larger = at === 0 ? Number.POSITIVE_INFINITY : units[first]![1];
    return [Math.floor((s % larger) / seconds), unit] as const;
  });
  return parts
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(" ");
}

/** The distance of an instant from now: `in 3 h`, `2 min ago`. */
export function distance(at: Date, now: Date): string {
  const ms = at.getTime() - now.getTime();
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** An instant in the reader's time zone, with seconds. */
export function local(at: Date): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export const utc = (at: Date) => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** A name with spaces for underscores: `usage_limit_reached` as words. */
export const wordsOf = (name: string) => name.replaceAll("_", " ");

/** The last eight characters of an ID: enough to tell IDs apart in a column whose head names their kind. */
export const shortId = (id: string) => `…${id.slice(-8)}`;
