/**
 * A chart of stacked bars, and of lines over them. What somebody points at, or reaches with the arrow keys, is written
 * above it and in the legend below it, so that no information is in the picture alone.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Place {
  /** The text below the axis, shown if there is room; `title` is the full text. */
  label: string;
  title: string;
}

export interface Drawn {
  name: string;
  /** A class of style/plot.css, which has the color. */
  tone: string;
  values: readonly (number | null)[];
}

interface Props {
  label: string;
  places: readonly Place[];
  bars?: readonly Drawn[];
  lines?: readonly Drawn[];
  /** Writes a value at a mark of the axis. */
  written: (value: number) => string;
  /** Whether the values are whole numbers, so that the axis has no marks between them. */
  isCount?: boolean;
  /** The text about one position on the horizontal axis; for null, about all positions. */
  said: (at: number | null) => ComponentChildren;
  legend: (at: number | null) => ComponentChildren;
  /** Opens the page for a position on the horizontal axis. */
  open?: ((at: number) => void) | undefined;
  height?: number;
}

const foot_px = 22;
const head_px = 8;
/** The width of a character in the labels of the vertical axis. */
const letter_px = 6.7;
/** The room beside the last bar, for half of its label. */
const end_px = 14;
/** The least room for a label below the axis. */
const label_px = 58;

export function Plot({
  label,
  places,
  bars = [],
  lines = [],
  written,
  isCount = false,
  said,
  legend,
  open,
  height = 220,
}: Props) {
  const [at, setAt] = useState<number | null>(null);
  const [box, width] = useWidth();
  // On a touch screen, the first touch selects a bar, and a second touch of the same bar opens its page.
  const opens = useRef(true);
  const current = at !== null && at < places.length ? at : null;
  const scale = scaleOf(places.length, bars, lines, isCount ? 1 : 0);
  const axis_px = 14 + letter_px * Math.max(...scale.marks.map((mark) => written(mark).length));
  const inner = Math.max(0, width - axis_px - end_px);
  const step = places.length === 0 ? 0 : inner / places.length;
  const placeOf = (x: number) => Math.min(places.length - 1, Math.max(0, Math.floor((x - axis_px) / step)));
  const pointed = ({ clientX, currentTarget }: MouseEvent) =>
    placeOf(clientX - (currentTarget as Element).getBoundingClientRect().left);
  const keyed = (event: KeyboardEvent) => {
    const next = reached(event.key, current, places.length);
    if (event.key === "Enter" && current !== null) open?.(current);
    if (next === undefined) return;
    event.preventDefault();
    setAt(next);
  };
  return (
    <div class="plot">
      <p class="plot-said" aria-live="polite">
        {said(current)}
      </p>
      <section
        class={open ? "plot-area opens" : "plot-area"}
        aria-label={`${label} Arrow keys go from place to place.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move between the bars.
        tabIndex={0}
        ref={box}
        onKeyDown={keyed}
        onPointerMove={(event) => setAt(pointed(event))}
        onPointerDown={(event) => {
          opens.current = event.pointerType !== "touch" || pointed(event) === at;
          setAt(pointed(event));
        }}
        onPointerLeave={({ pointerType }) => pointerType !== "touch" && setAt(null)}
        onBlur={() => setAt(null)}
        onClick={(event) => opens.current && open?.(pointed(event))}
      >
        {width > 0 && step > 0 && (
          <Picture
            places={places}
            bars={bars}
            lines={lines}
            written={written}
            scale={scale}
            axis_px={axis_px}
            height={height}
            width={width}
            step={step}
            at={current}
          />
        )}
      </section>
      {legend(current)}
    </div>
  );
}

/** The index of the position that a key moves to, or null for no position. Undefined: the key moves nothing. */
function reached(key: string, at: number | null, count: number): number | null | undefined {
  const last = count - 1;
  if (key === "ArrowRight") return at === null ? 0 : Math.min(last, at + 1);
  if (key === "ArrowLeft") return at === null ? last : Math.max(0, at - 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return key === "Escape" ? null : undefined;
}

/** The width that an element has, followed as it changes. */
function useWidth() {
  const [width, setWidth] = useState(0);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = box.current!;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    setWidth(element.clientWidth);
    return () => watcher.disconnect();
  }, []);
  return [box, width] as const;
}

interface Scale {
  marks: number[];
  top: number;
}
interface Sized extends Required<Pick<Props, "places" | "bars" | "lines" | "written" | "height">> {
  scale: Scale;
  axis_px: number;
  width: number;
  step: number;
  at: number | null;
}

function scaleOf(places: number, bars: readonly Drawn[], lines: readonly Drawn[], step_min: number): Scale {
  const heightAt = (place: number) => bars.reduce((sum, { values }) => sum + Math.max(0, values[place] ?? 0), 0);
  const stacked = Array.from({ length: places }, (_, place) => heightAt(place));
  return marksOf(
    Math.max(0, ...stacked, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))),
    step_min,
  );
}

function Picture({ places, bars, lines, written, scale, axis_px, height, width, step, at }: Sized) {
  const { marks, top } = scale;
  const room = height - foot_px - head_px;
  const x = (place: number) => axis_px + (place + 0.5) * step;
  const y = (value: number) => head_px + room * (1 - Math.max(0, value) / top);
  const every = Math.max(1, Math.ceil(label_px / step));
  const bar = Math.max(1, Math.min(44, step * 0.72));
  return (
    <svg width={width} height={height} aria-hidden="true">
      {at !== null && <rect class="plot-at" x={x(at) - step / 2} y={head_px} width={step} height={room} />}
      {marks.map((mark) => (
        <g key={mark}>
          <line class="plot-grid" x1={axis_px} x2={width - end_px} y1={y(mark)} y2={y(mark)} />
          <text class="plot-mark" x={axis_px - 8} y={y(mark) + 4} text-anchor="end">
            {written(mark)}
          </text>
        </g>
      ))}
      {places.map(({ title }, place) => (
        <Stack key={title} bars={bars} place={place} x={x(place) - bar / 2} y={y} width={bar} />
      ))}
      {lines.map(({ name, tone, values }) => (
        <Line
          key={name}
          tone={tone}
          points={values.map((value, place) => value !== null && ([x(place), y(value)] as const))}
        />
      ))}
      {places.map(
        ({ title, label }, place) =>
          place % every === 0 && (
            <text key={title} class="plot-mark" x={x(place)} y={height - 6} text-anchor="middle">
              {label}
            </text>
          ),
      )}
    </svg>
  );
}

interface Stacked {
  bars: readonly Drawn[];
  place: number;
  x: number;
  y: (value: number) => number;
  width: number;
}

function Stack({ bars, place, x, y, width }: Stacked) {
  let below = 0;
  return (
    <>
      {bars.map(({ name, tone, values }, at) => {
        const value = Math.max(0, values[place] ?? 0);
        if (value === 0) return null;
        const [bottom, top] = [y(below), y(below + value)];
        below += value;
        // A value too small to be seen still gets a thin line.
        return (
          <rect key={`${at} ${name}`} class={tone} x={x} y={top} width={width} height={Math.max(0.75, bottom - top)} />
        );
      })}
    </>
  );
}

/** A line, with a gap where there is no value, and a dot for a value between two gaps. */
function Line({ tone, points }: { tone: string; points: readonly (readonly [x: number, y: number] | false)[] }) {
  const parts: (readonly [x: number, y: number])[][] = [[]];
  for (const point of points) {
    if (point) parts.at(-1)!.push(point);
    else if (parts.at(-1)!.length > 0) parts.push([]);
  }
  return (
    <>
      {parts.map((part) =>
        part.length === 1 ? (
          <circle key={part[0]![0]} class={tone} cx={part[0]![0]} cy={part[0]![1]} r="2.5" />
        ) : (
          part.length > 1 && (
            <polyline
              key={part[0]![0]}
              class={tone}
              points={part.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")}
            />
          )
        ),
      )}
    </>
  );
}

/** The marks of an axis: three to five round values, of which the last is not below the highest value. */
function marksOf(highest: number, step_min: number): Scale {
  if (!(highest > 0)) return { marks: [0], top: 1 };
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999)!;
  const step = Math.max(step_min, round);
  const count = Math.ceil(highest / step - 0.001);
  return { marks: Array.from({ length: count + 1 }, (_, n) => n * step), top: count * step };
}

interface LegendProps {
  tone: string;
  /** The whole name, if the name may be cut. */
  title?: string;
  figure: ComponentChildren;
  children: ComponentChildren;
}

/** The line of a series in the legend: its color, its name and its figure. */
export function LegendEntry({ tone, title, figure, children }: LegendProps) {
  return (
    <li>
      <Swatch tone={tone} />
      <span class="name" title={title}>
        {children}
      </span>
      <span>{figure}</span>
    </li>
  );
}

/** A square in the color of a series. */
function Swatch({ tone }: { tone: string }) {
  return (
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      {tone.startsWith("line") ? (
        <line class={tone} x1="0" x2="10" y1="5" y2="5" />
      ) : (
        <rect class={tone} width="10" height="10" />
      )}
    </svg>
  );
}
