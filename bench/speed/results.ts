// Reads and writes the results of runs in bench/results, one file for each.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { HostSpeed } from "./host.ts";
import type { Machine, Versions } from "./machine.ts";
import type { Line } from "./report.ts";

export interface Result {
  date: string;
  isQuick: boolean;
  /** The words of `--only`; absent if the result has all rows. */
  only?: string;
  /** A note about other load on the machine. */
  note: string;
  took_s: number;
  versions: Versions;
  machine: Machine;
  host?: { before: HostSpeed; after: HostSpeed };
  /** Failures, such as a response that did not belong to its request. The rows of failed scenarios are missing. */
  failures: string[];
  lines: Line[];
}

const root = join(import.meta.dir, "../..");
const folder = join(root, "bench/results");

/** The newest result. Null if there is none yet. */
export function newest(): Result | null {
  mkdirSync(folder, { recursive: true });
  const name = readdirSync(folder)
    .filter((one) => one.endsWith(".json") && !one.endsWith("-part.json"))
    .sort()
    .at(-1);
  return name === undefined ? null : (JSON.parse(readFileSync(join(folder, name), "utf8")) as Result);
}

/** Writes a result, and returns the path of the new file, relative to the checkout. */
export function write(result: Result): string {
  mkdirSync(folder, { recursive: true });
  const moment = result.date.slice(0, 16).replace(":", "");
  const kind = result.only ? "-part" : result.isQuick ? "-quick" : "";
  const path = join(folder, `${moment}${kind}.json`);
  writeFileSync(path, `${JSON.stringify(result, null, 1)}\n`);
  return relative(root, path);
}
