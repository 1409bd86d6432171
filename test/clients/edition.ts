// The versions of the clients that a test suite runs, and the result of a run.

import { resolve } from "node:path";
import { command } from "../../scripts/command.ts";
import { type Counts, countsOf } from "../../scripts/counts.ts";

/**
 * `pinned`: the versions that this repository pins. `newest`: the versions that the package registry calls the latest.
 */
export const editions = ["pinned", "newest"] as const;
export type Edition = (typeof editions)[number];

export interface Ran {
  counts: Counts;
  /** The versions of the clients, such as `openai 7.55.0, zod 4.6.7`. */
  versions: string;
}

export type Suite = (edition: Edition) => Promise<Ran>;

/** Thrown if something that the suite needs is not on this machine and cannot be downloaded. */
export class CannotRun extends Error {}

/**
 * Runs the files of checks, whose paths may be relative to this folder. Processes that the checks start are ended with
 * them.
 */
export async function ranChecks(
  paths: readonly string[],
  how: { limit_ms: number; environment: Record<string, string>; test_ms?: number },
): Promise<Counts> {
  const timeout = how.test_ms === undefined ? [] : [`--timeout=${how.test_ms}`];
  const files = paths.map((path) => resolve(import.meta.dir, path));
  const { code, output } = await command([process.execPath, "test", ...timeout, ...files], how);
  return countsOf(output, code);
}

/** Creates a suite whose clients are run at their pinned versions only. */
export function onlyPinned(versions: string, run: () => Promise<Counts>): Suite {
  return async (edition) => {
    if (edition === "newest") throw new CannotRun("It has no other version than the pinned one.");
    return { counts: await run(), versions };
  };
}

/** A list of the names, each with its version, as text. */
export function listed(versions: Record<string, string>): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
}
