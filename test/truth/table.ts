/** Formats the results as a Markdown table of the differences between the charges and the true costs. */
import type { Cell, End } from "./charges.ts";
import type { Row } from "./rows.ts";

export const error = ({ charged, truth }: Cell): number => (truth === 0 ? charged : charged / truth - 1);

export function shownOf(rows: readonly Row[], ends: readonly End[], cells: readonly Cell[]): string {
  const shown = (row: Row, end: End) => {
    const cell = cells.find((one) => one.row === row.name && one.end === end);
    if (!cell) return "";
    if (cell.truth === 0) return String(cell.charged);
    const percent = (error(cell) * 100).toFixed(1);
    return `${error(cell) > 0 ? "+" : ""}${percent.replace("-", "−")} %`.replace(/^[+−]?0\.0 %$/, "0");
  };
  return [
    `| engine | ${ends.join(" | ")} |`,
    `| --- |${ends.map(() => " --- |").join("")}`,
    ...rows.map((row) => `| ${row.name} | ${ends.map((end) => shown(row, end)).join(" | ")} |`),
  ].join("\n");
}
