/** Reads an engine's own load from its metrics in Prometheus' text format, under the names of its dialect. Pure. */
import type { Dialect } from "../../core/protocol/dialect.ts";

export interface EngineLoad {
  /** The number of requests that wait in the engine, for all of its models. */
  waiting: number;
  /** The used share of the fullest cache, from 0 to 1; null if the engine does not report it. */
  cacheShare: number | null;
}

/** Above this share of its cache in use, an engine lets requests wait, or stops running ones and begins them again. */
const cacheShare_max = 0.95;

/** Reads the load; null if the text has none of the metrics. */
export function engineLoadOf(text: string, names: Dialect["load"]): EngineLoad | null {
  const waiting = valuesOf(text, names.waiting);
  const shares = valuesOf(text, names.cache);
  if (waiting.length === 0 && shares.length === 0) return null;
  return {
    waiting: waiting.reduce((sum, value) => sum + value, 0),
    cacheShare: shares.length === 0 ? null : Math.max(...shares),
  };
}

export function isCrowded({ waiting, cacheShare }: EngineLoad, waiting_max: number): boolean {
  return waiting > waiting_max || (cacheShare !== null && cacheShare > cacheShare_max);
}

/** The number of tokens that the engine has generated since it started; null if it does not report it. */
export function generatedTokens(text: string, names: readonly string[]): number | null {
  const counts = valuesOf(text, names);
  return counts.length === 0 ? null : counts.reduce((sum, value) => sum + value, 0);
}

/** The most lines of one metric that are read. A metric has a line for each set of labels. */
const lines_max = 4096;

function valuesOf(text: string, names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const values = labelledLines(text, name).map((line) => Number(/^(?:\{.*\})? +(\S+)/.exec(line)?.[1]));
    return values.filter((value) => Number.isFinite(value) && value >= 0);
  });
}

/**
 * The text after the name, of each line that begins with the name. Other lines cost only a search: an engine may send
 * millions of lines.
 */
function labelledLines(text: string, name: string): string[] {
  const lines: string[] = [];
  for (let at = text.indexOf(name); at >= 0 && lines.length < lines_max; at = text.indexOf(name, at + 1)) {
    if (at > 0 && text[at - 1] !== "\n") continue;
    const from = at + name.length;
    if (text[from] !== " " && text[from] !== "{") continue;
    const end = text.indexOf("\n", from);
    lines.push(text.slice(from, end < 0 ? text.length : end));
  }
  return lines;
}
