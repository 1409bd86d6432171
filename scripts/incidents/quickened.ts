// Cuts the durations in rules and queries to a thirtieth, so that an incident takes seconds. Thresholds stay unchanged.

const times = 30;
const [s_min, s_max] = [4, 30];
const unit_s: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

const cut = (count: string, unit: string) =>
  `${Math.round(Math.min(s_max, Math.max(s_min, (Number(count) * unit_s[unit]!) / times)))}s`;

export function quickenedSpans(query: string): string {
  return query.replace(/\[(\d+)([smhd])\]/g, (_, count: string, unit: string) => `[${cut(count, unit)}]`);
}

export function quickened(rules: string): string {
  return quickenedSpans(rules).replace(
    /^(\s+for: )(\d+)([smhd])$/gm,
    (_, head: string, count: string, unit: string) => head + cut(count, unit),
  );
}
