/**
 * Estimates how many tokens a text has from its code units, by a ratio for each script on a route. The ratio is learned
 * from complete answers whose tokens are all in their text. One answer moves it by at most a tenth, and never beyond
 * what a vocabulary can have, so that a wrong or odd report does little: docs/design/usage.md, Counting tokens.
 */
import type { OutputSums } from "../store/calibration.ts";
import type { Learned } from "./learned.ts";
import { type Script, scripts, type Units } from "./script.ts";

/** Code units per token for each script: the value before the first report, and the bounds. */
const known: Record<Script, { first: number; min: number; max: number }> = {
  latin: { first: 1 / 4, min: 1 / 8, max: 1 / 1 },
  cjk: { first: 1 / 1.4, min: 1 / 3, max: 1 / 0.4 },
  other: { first: 1 / 2.5, min: 1 / 8, max: 1 / 0.3 },
};
/** The most by which one answer moves a ratio, as a part of it. */
const step_max = 0.1;
/** An answer with fewer tokens in a script teaches nothing about it. */
const tokens_min = 64;
/** The tokens after which older observations have faded, so that a change of the engine is learned. */
const tokens_remembered = 200_000;

type Sums = Pick<Learned<OutputSums>, "get" | "learn">;
type Known = Pick<Sums, "get">;

export function textTokens(sums: Known, route: string, units: Units): number {
  return scripts.reduce((tokens, script) => tokens + units[script] * ratioOf(sums, route, script), 0);
}

/** Whether a text of this size can have so many tokens. */
export function isPlausibleText(units: Units, tokens: number): boolean {
  const bound = (which: "min" | "max") =>
    scripts.reduce((sum, script) => sum + units[script] * known[script][which], 0);
  // An answer's end adds a few tokens.
  return tokens <= bound("max") + 2 && tokens >= bound("min");
}

/** Learns from a text with so many tokens. They are divided among its scripts in proportion to the expected numbers. */
export function learnText(sums: Sums, route: string, units: Units, tokens: number): void {
  const factor = tokens / textTokens(sums, route, units);
  const shares = scripts.map((script) => units[script] * ratioOf(sums, route, script) * factor);
  for (const [at, script] of scripts.entries())
    if (shares[at]! >= tokens_min) learnScript(sums, nameOf(route, script), script, units[script], shares[at]!);
}

function learnScript(sums: Sums, name: string, script: Script, codeUnits: number, tokens: number): void {
  const { first, min, max } = known[script];
  const { textTokens: before, textCodeUnits: unitsBefore } = sums.get(name) ?? nothingOf;
  const fade = before > tokens_remembered ? 0.5 : 1;
  const ratio = unitsBefore > 0 ? before / unitsBefore : first;
  const units = unitsBefore * fade + codeUnits;
  const mean = (before * fade + tokens) / units;
  const next = within(within(mean, ratio * (1 - step_max), ratio * (1 + step_max)), min, max);
  // A ratio that was held back by `step_max` is not a mean yet: the next answer gets full weight.
  const weight = next === mean ? units : codeUnits;
  sums.learn(name, { ...nothingOf, textTokens: next * weight, textCodeUnits: weight });
}

function ratioOf(sums: Known, route: string, script: Script): number {
  const { textTokens: tokens, textCodeUnits: units } = sums.get(nameOf(route, script)) ?? nothingOf;
  const { first, min, max } = known[script];
  return units > 0 ? within(tokens / units, min, max) : first;
}

/** The name of the sums of a script on a route, among those of routes. */
function nameOf(route: string, script: Script): string {
  return `${route} (${script})`;
}

const nothingOf: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, textTokens: 0, textCodeUnits: 0 });

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
