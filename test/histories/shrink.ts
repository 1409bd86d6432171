// Finds the shortest replay of a history (a simulated run) that ends in a violation: it keeps only the requests,
// faults, messages and nodes that the violation needs. Every step replays the history exactly, from the same seed.

import { type History, type HistoryOptions, runHistory } from "./history.ts";
import type { Keep } from "./world.ts";

export interface Shortest {
  history: History & { violation: NonNullable<History["violation"]> };
  keep: Required<Keep>;
  /** The number of histories that were run to find the shortest replay. */
  tried: number;
}

export function shortest(seed: number, options: HistoryOptions = {}): Shortest | null {
  const first = runHistory(seed, options);
  if (!first.violation) return null;
  const { rule } = first.violation;
  let tried = 0;
  const breaks = (keep: Keep): boolean => {
    tried += 1;
    return runHistory(seed, { ...options, keep }).violation?.rule === rule;
  };

  let keep = first.kept;
  for (let before = ""; before !== JSON.stringify(keep); ) {
    before = JSON.stringify(keep);
    keep = { ...keep, requests: fewest(keep.requests, (requests) => breaks({ ...keep, requests })) };
    keep = { ...keep, faults: fewest(keep.faults, (faults) => breaks({ ...keep, faults })) };
    keep = { ...keep, messages: fewest(keep.messages, (messages) => breaks({ ...keep, messages })) };
    keep = { ...keep, nodes: fewest(keep.nodes, (nodes) => nodes.length > 0 && breaks({ ...keep, nodes })) };
    for (let parts = 0; parts < keep.parts; parts++) if (breaks({ ...keep, parts })) keep = { ...keep, parts };
  }
  const history = runHistory(seed, { ...options, keep, traced: true });
  return { history: { ...history, violation: history.violation! }, keep, tried };
}

/**
 * Leaves out halves of the list, then quarters, down to single items, as long as `does` is true of the remaining ones.
 */
function fewest<Item>(all: readonly Item[], does: (some: readonly Item[]) => boolean): readonly Item[] {
  let some = all;
  for (let size = Math.ceil(some.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < some.length; ) {
      const fewer = [...some.slice(0, from), ...some.slice(from + size)];
      if (does(fewer)) some = fewer;
      else from += size;
    }
  }
  return some;
}

/** The argument of `npm run histories -- --keep` that replays these parts. */
export function keepInWords({ nodes, requests, parts, faults, messages }: Required<Keep>): string {
  return `nodes=${nodes.join()} requests=${requests.join()} parts=${parts} faults=${faults.join()} messages=${messages.join()}`;
}

/** Reads the argument of `--keep`; returns null if it is malformed. */
export function keepOf(words: string): Keep | null {
  const keep: Keep = {};
  for (const word of words.split(/\s+/).filter((one) => one !== "")) {
    const [name = "", value = ""] = word.split("=");
    const list = value.split(",").filter((one) => one !== "");
    const numbers = list.map(Number);
    if (name === "messages") keep.messages = list;
    else if (numbers.some((number) => !Number.isInteger(number) || number < 0)) return null;
    else if (name === "parts") keep.parts = numbers[0] ?? 0;
    else if (name === "nodes" || name === "requests" || name === "faults") keep[name] = numbers;
    else return null;
  }
  return keep;
}
