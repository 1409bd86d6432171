/** A chart over time. The canvas is a picture; what it shows stands beside it as numbers or as a table. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { currentTheme } from "../core/theme.ts";

export interface Line {
  label: string;
  /** The name of a custom property of style/theme.css. */
  color: string;
}

interface Props {
  label: string;
  /** Seconds since 1970. */
  times: number[];
  values: (number | null)[][];
  lines: readonly Line[];
  height: number;
  kind: "line" | "bars";
  written: (value: number) => string;
  /** The days that it is of, in seconds since 1970. */
  span: readonly [from: number, to: number];
}

export function Chart({ label, times, values, lines, height, kind, written, span }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [times, ...values] as uPlot.AlignedData;
  const current = currentTheme.value;
  useEffect(() => {
    const element = place.current!;
    const made = new uPlot(
      optionsOf({ lines, height, kind, written, span, width: element.clientWidth }),
      data,
      element,
    );
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
    };
  }, [current, kind, height, lines.length, span[0], span[1]]);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}

type Wanted = Pick<Props, "lines" | "height" | "kind" | "written" | "span"> & { width: number };

function optionsOf({ lines, height, kind, written, span, width }: Wanted): uPlot.Options {
  const axis = {
    stroke: () => colorOf("--faint"),
    grid: { stroke: () => colorOf("--line"), width: 1 },
    ticks: { show: false },
  };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const bars = kind === "bars" ? { paths: uPlot.paths.bars!({ size: [0.7, 40] }) } : {};
  return {
    width,
    height,
    padding: [8, 20, 0, 0],
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { range: () => [span[0], span[1]] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, font, space: 64, size: 24, incrs: [day_s, 2 * day_s, 7 * day_s, 30 * day_s], values: daysOf },
      { ...axis, font, size: 56, space: 28, values: (_, splits) => splits.map(written) },
    ],
    series: [
      {},
      ...lines.map(({ label, color }) => ({
        label,
        stroke: () => colorOf(color),
        fill: () => (kind === "bars" ? colorOf(color) : ""),
        width: 1.5,
        points: { show: false },
        ...bars,
      })),
    ],
  };
}

const day_s = 86_400;
const daysOf = (_: uPlot, splits: number[]) => splits.map((at) => new Date(at * 1000).toISOString().slice(5, 10));

const colorOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The last minutes of one figure, without axes. */
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
