/**
 * How many tokens a text has, by its code units: the ratio of each script on a route. It is learned from complete answers
 * whose tokens are all in their text. An answer moves it by at most a tenth, and never beyond what a vocabulary can be, so
 * that a wrong or odd report does little: docs/design/usage.md, Counting tokens.
 */
import type { OutputSums } from "../store/calibration.ts";
import type { Learned } from "./learned.ts";
import { type Script, scripts, type Units } from "./script.ts";

/** Tokens per code unit: before the first report, and the bounds. Written as code units per token. */
const known: Record<Script, { first: number; min: number; max: number }> = {
  latin: { first: 1 / 4, min: 1 / 8, max: 1 / 1 },
  cjk: { first: 1 / 1.4, min: 1 / 3, max: 1 / 0.4 },
  other: { first: 1 / 2.5, min: 1 / 8, max: 1 / 0.3 },
};
/** An answer moves a ratio by at most this part of it. */
const step_max = 0.1;
/** An answer teaches nothing of a script in which it has fewer tokens. */
const tokens_min = 64;
/** Older observations fade, so that a change of the engine is learned. */
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
  // A few tokens more end an answer.
  return tokens <= bound("max") + 2 && tokens >= bound("min");
}

/** Learns from a text with so many tokens. Scripts share them as they were expected to. */
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
  // A ratio that was held back is no mean yet: the next answer counts as much.
  const weight = next === mean ? units : codeUnits;
  sums.learn(name, { ...nothingOf, textTokens: next * weight, textCodeUnits: weight });
}

function ratioOf(sums: Known, route: string, script: Script): number {
  const { textTokens: tokens, textCodeUnits: units } = sums.get(nameOf(route, script)) ?? nothingOf;
  const { first, min, max } = known[script];
  return units > 0 ? within(tokens / units, min, max) : first;
}

/** The sums of a script have a name of their own among those of routes. */
function nameOf(route: string, script: Script): string {
  return `${route} (${script})`;
}

const nothingOf: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, textTokens: 0, textCodeUnits: 0 });

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
