// The versions at which a suite runs its clients, and the result of a run.

import type { Counts } from "../../scripts/counts.ts";

/** `pinned`: the versions that this repository names. `newest`: those that the registry calls the latest. */
export const editions = ["pinned", "newest"] as const;
export type Edition = (typeof editions)[number];

export interface Ran {
  counts: Counts;
  /** The versions of the clients, such as `openai 7.55.0, zod 4.6.7`. */
  versions: string;
}

export type Suite = (edition: Edition) => Promise<Ran>;

/** Thrown if something that the suite needs is not on this machine, and cannot be fetched. */
export class CannotRun extends Error {}

/** A suite whose clients have only the pinned version. */
export function onlyPinned(versions: string, run: () => Promise<Counts>): Suite {
  return async (edition) => {
    if (edition === "newest") throw new CannotRun("It has no other version than the pinned one.");
    return { counts: await run(), versions };
  };
}

/** A text of each name with its version. */
export function listed(versions: Record<string, string>): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
}
