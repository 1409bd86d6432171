/** A line chart of one figure over the last minutes, without axes. */
export function Spark({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const points = values.map((value, at) => ({ value: value ?? 0, at }));
  const highest = Math.max(1e-9, ...points.map(({ value }) => value));
  const x = (at: number) => (points.length < 2 ? 100 : (at / (points.length - 1)) * 100);
  const y = (value: number) => 23 - (value / highest) * 22;
  const line = points.map(({ value, at }) => `${x(at).toFixed(2)},${y(value).toFixed(2)}`).join(" ");
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && <polygon points={`0,24 ${line} 100,24`} />}
      {points.length > 1 && <polyline points={line} />}
    </svg>
  );
}
