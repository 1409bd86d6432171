// At which versions a suite runs its clients, and what came of it.

import type { Counts } from "../../scripts/counts.ts";

/** The versions that this repository names, or those that the registry calls the latest. */
export const editions = ["pinned", "newest"] as const;
export type Edition = (typeof editions)[number];

export interface Ran {
  counts: Counts;
  /** Of the clients, such as `openai 7.55.0, zod 4.6.7`. */
  versions: string;
}

export type Suite = (edition: Edition) => Promise<Ran>;

/** Something that the suite needs is not on this machine, or cannot be fetched. */
export class CannotRun extends Error {}

/** For what has one version alone. */
export function onlyPinned(versions: string, run: () => Promise<Counts>): Suite {
  return async (edition) => {
    if (edition === "newest") throw new CannotRun("It has no other version than the pinned one.");
    return { counts: await run(), versions };
  };
}

/** Each name with what was found of it. */
export function listed(versions: Record<string, string>): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
}
