// Draws the dashboards of a time span as SVG, with the same panels and queries as Grafana.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dashboards, type Panel } from "../../deploy/dashboards.ts";
import type { Prometheus } from "../prometheus/server.ts";
import { quickenedSpans } from "./quickened.ts";

const [width, height, columns] = [460, 170, 2];
const plot = { left: 52, top: 30, right: 8, bottom: 40 };
const moments = 150;
const lines_max = 8;
const colours = ["#3274d9", "#e0752d", "#629e51", "#bf1b00", "#705da0", "#b7950b", "#0e7c7b", "#6d6d6d"];

interface Line {
  name: string;
  points: [at_s: number, value: number][];
}

export async function drawDashboards(prometheus: Prometheus, since_ms: number, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const span: [number, number] = [since_ms / 1000, Date.now() / 1000];
  for (const [name, panels] of Object.entries(dashboards)) {
    const drawn: string[] = [];
    for (const [at, panel] of panels.entries()) {
      const lines = await linesOf(prometheus, panel, since_ms);
      drawn.push(
        `<g transform="translate(${(at % columns) * width} ${Math.floor(at / columns) * height})">${panelOf(panel, lines, span)}</g>`,
      );
    }
    const rows = Math.ceil(panels.length / columns);
    const size = `width="${columns * width}" height="${rows * height}"`;
    const style = "text{font:10px sans-serif;fill:#333}.t{font-weight:bold;font-size:11px}";
    writeFileSync(
      join(folder, `${name}.svg`),
      `<svg xmlns="http://www.w3.org/2000/svg" ${size}><title>Sluice: ${name}</title><style>${style}</style><rect ${size} fill="#fff"/>${drawn.join("\n")}</svg>\n`,
    );
  }
}

async function linesOf(prometheus: Prometheus, { queries }: Panel, since_ms: number): Promise<Line[]> {
  const lines: Line[] = [];
  for (const [legend, query] of queries) {
    for (const { metric, values } of await prometheus.history(quickenedSpans(query), since_ms, moments)) {
      const name = legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? "");
      lines.push({ name, points: values.map(([at, value]) => [at, Number(value)] as [number, number]) });
    }
  }
  return lines;
}

function panelOf({ title, unit }: Panel, all: Line[], [start, end]: [number, number]): string {
  const lines = all.slice(0, lines_max);
  const known = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
  const top = Math.max(...known, 0) || 1;
  const x = (at: number) => plot.left + ((at - start) / (end - start)) * (width - plot.left - plot.right);
  const y = (value: number) => height - plot.bottom - (value / top) * (height - plot.top - plot.bottom);
  const grid = [0, 0.5, 1].map((share) => {
    const at = y(top * share).toFixed(1);
    return `<path d="M${plot.left} ${at}H${width - plot.right}" stroke="#ddd"/><text x="${plot.left - 4}" y="${at}" text-anchor="end" dominant-baseline="middle">${written(top * share, unit)}</text>`;
  });
  const paths = lines.map(
    ({ points }, at) => `<path d="${pathOf(points, x, y)}" fill="none" stroke="${colours[at]}"/>`,
  );
  const names = lines.map(({ name }, at) => `<tspan fill="${colours[at]}">${escaped(name.slice(0, 28))}  </tspan>`);
  const more = all.length > lines_max ? `<tspan>and ${all.length - lines_max} more</tspan>` : "";
  return [
    `<text class="t" x="${plot.left}" y="18">${escaped(title)}</text>`,
    ...grid,
    ...paths,
    `<text x="${plot.left}" y="${height - 22}">${names.slice(0, 4).join("")}</text>`,
    `<text x="${plot.left}" y="${height - 8}">${names.slice(4).join("")}${more}</text>`,
  ].join("");
}

/** The SVG path of a line chart. If a value is missing, the line has a gap. */
function pathOf(points: Line["points"], x: (at: number) => number, y: (value: number) => number): string {
  let isDown = false;
  return points
    .map(([at, value]) => {
      if (!Number.isFinite(value)) {
        isDown = false;
        return "";
      }
      const step = `${isDown ? "L" : "M"}${x(at).toFixed(0)} ${y(value).toFixed(0)}`;
      isDown = true;
      return step;
    })
    .join("");
}

function written(value: number, unit: string): string {
  if (unit === "percentunit") return `${(value * 100).toPrecision(3)} %`;
  if (unit === "bytes") return `${(value / 2 ** 20).toFixed(0)} MiB`;
  const short = value >= 1e6 ? `${(value / 1e6).toPrecision(3)} M` : String(Number(value.toPrecision(3)));
  return unit === "s" ? `${short} s` : unit === "reqps" ? `${short}/s` : short;
}

const escaped = (text: string) => text.replace(/[<&]/g, (sign) => (sign === "<" ? "&lt;" : "&amp;"));
