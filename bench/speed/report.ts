// Makes the table of results from slices (a target's figures in one round): the best round, the value with which it is
// compared, whether it is within its budget, and the comparison with an earlier run. Pure.

import { percentile } from "./percentile.ts";
import { names, type Row, type Scenario, type Slice } from "./scenarios.ts";

export interface Cell {
  /** The measured value. Null: the target served no request. */
  value: number | null;
  /** The ratio to another target's value, or the difference from it; null if there is no comparison. */
  compared: number | null;
  note: string;
}

export interface Line {
  id: string;
  name: string;
  unit: Row["unit"];
  as: "ratio" | "added" | null;
  budget: number | null;
  cells: Record<string, Cell>;
}

/** The slices of each target, one for each round. */
export type Slices = ReadonlyMap<string, readonly Slice[]>;

export function linesOf(scenario: Scenario, slices: Slices): Line[] {
  return scenario.rows.map((row) => lineOf(row, scenario, slices));
}

/** The targets whose requests use the bench's own Postgres and Redis. */
const storing: readonly string[] = [names.postgres, names.unlimited];

function lineOf(row: Row, scenario: Scenario, slices: Slices): Line {
  const { id, name, unit, of, compared, budget } = row;
  const best = (target: string): Slice | null => {
    const answered = slices.get(target)?.filter(({ requests }) => requests > 0) ?? [];
    return answered.length > 0 ? answered.reduce((one, other) => (of(other) < of(one) ? other : one)) : null;
  };
  const base = compared ? best(compared.with) : null;
  const cells: Record<string, Cell> = {};
  for (const target of slices.keys()) {
    const slice = best(target);
    if (!slice) {
      const asked = slices.get(target)!.reduce((sum, { leftOut }) => sum + leftOut, 0);
      cells[target] = { value: null, compared: null, note: `answered none of ${asked} requests` };
      continue;
    }
    const value = of(slice);
    // The target has no such figure; for example, a target that only passes requests on has no probes.
    if (Number.isNaN(value)) continue;
    if (compared && (target === compared.with || !base)) {
      cells[target] = { value, compared: null, note: "" };
      continue;
    }
    const against = compared?.as === "ratio" ? value / of(base!) : compared ? value - of(base!) : null;
    cells[target] = {
      value,
      compared: against,
      note: noteOf(slices.get(target)!, storing.includes(target), row, scenario),
    };
  }
  // A row that compares with the target without limits is shown only for the node, which runs with and without limits.
  const told = compared?.with === names.unlimited ? storing : Object.keys(cells);
  return {
    ...{ id, name, unit, as: compared?.as ?? null, budget },
    cells: Object.fromEntries(Object.entries(cells).filter(([target]) => told.includes(target))),
  };
}

/** The note in a cell: whether the target kept up with the load, and the CPU time of its stores. */
function noteOf(slices: readonly Slice[], isStoring: boolean, { unit }: Row, scenario: Scenario): string {
  const { load, behaviour } = scenario;
  const sum = (of: (slice: Slice) => number) => slices.reduce((total, slice) => total + of(slice), 0);
  const requests = sum((slice) => slice.requests);
  const leftOut = sum((slice) => slice.leftOut);
  const notes: string[] = [];
  if (leftOut > 0) notes.push(`does not keep up: ${Math.round((100 * leftOut) / (leftOut + requests))} % left out`);
  // Events that pile up are read together, which is cheap, so an event's cost is only valid if streams keep up with the
  // engine.
  const paced_ms = behaviour.wait_ms + behaviour.tokens * behaviour.every_ms;
  const slowed =
    percentile(
      slices.flatMap((slice) => slice.latencies_ms),
      0.5,
    ) / paced_ms;
  if (load.kind === "spread" && slowed > 1.15) notes.push(`streams took ${slowed.toFixed(1)} times their pace`);
  if (isStoring && unit === "µs" && load.kind !== "spread") {
    const [postgres, redis] = [sum((slice) => slice.postgres_us) / requests, sum((slice) => slice.redis_us) / requests];
    notes.push(`Postgres ${postgres.toFixed(0)}, Redis ${redis.toFixed(0)}`);
  }
  return notes.join("; ");
}

/**
 * The factor by which a cell of the table exceeds its budget, such as 1.5 for half as much again. Null: the cell is
 * within its budget, or has none.
 */
export function overBudget({ as, budget }: Line, { value, compared }: Cell): number | null {
  if (budget === null) return null;
  const counts = as === null ? value : compared;
  return counts === null || counts <= budget ? null : counts / budget;
}

const guard_factor = 1.5;

/** The ratios that have grown beyond the allowed factor since an earlier run, as texts. */
export function grown(lines: readonly Line[], recorded: readonly Line[]): string[] {
  return lines.flatMap(({ id, name, as, cells }) => {
    const earlier = recorded.find((line) => line.id === id);
    if (!earlier || as !== "ratio") return [];
    return Object.entries(cells).flatMap(([target, { compared }]) => {
      const was = earlier.cells[target]?.compared ?? null;
      if (compared === null || was === null || compared <= was * guard_factor) return [];
      return [`${name}, ${target}: ${compared.toFixed(2)} times, and ${was.toFixed(2)} times when it was recorded`];
    });
  });
}

const withUnit = (value: number, unit: Row["unit"]) =>
  `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)} ${unit}`;

function cellText(line: Line, cell: Cell | undefined, isOurs: boolean): string {
  if (!cell) return "–";
  const { value, compared, note } = cell;
  const parts = value === null ? [] : [withUnit(value, line.unit)];
  if (compared !== null && line.as === "ratio") parts.push(`${compared.toFixed(2)}×`);
  if (compared !== null && line.as === "added")
    parts.push(`${compared < 0 ? "−" : "+"}${withUnit(Math.abs(compared), line.unit)}`);
  const over = isOurs ? overBudget(line, cell) : null;
  if (over !== null) parts.push(`**${over.toFixed(over < 2 ? 2 : 1)} times the budget**`);
  if (note !== "") parts.push(note);
  return parts.join(", ");
}

function budgetText({ as, budget, unit }: Line): string {
  if (budget === null) return "–";
  if (as === "ratio") return `≤ ${budget}×`;
  return as === "added" ? `≤ +${budget} ${unit}` : `≤ ${budget} ${unit}`;
}

/** The table in Markdown. `ours` names the targets that have budgets. */
export function markdown(lines: readonly Line[], targets: readonly string[], ours: readonly string[]): string {
  const columns = targets.filter((target) => lines.some(({ cells }) => target in cells));
  const rows = lines.map((line) => [
    line.name,
    budgetText(line),
    ...columns.map((target) => cellText(line, line.cells[target], ours.includes(target))),
  ]);
  const head = ["", "budget", ...columns];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
