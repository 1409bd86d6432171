/**
 * A client with an idempotency key that is cut off, and whose node may be killed, gets the same bytes from another
 * node, or the protocol's error once and then a new response. It is charged at most once. `npm run repeats` runs a
 * thousand rounds.
 */
import { expect, test } from "bun:test";
import { seed, times } from "../harness/depth.ts";
import { repeatRun } from "./repeats.ts";

const rounds = times(12, 120);

test.each(["Redis", "the database"] as const)(
  `${rounds} rounds with logs in %s break no promise`,
  async (place) => {
    const run = await repeatRun({ seed, rounds, clients: 8, place });
    expect({ seed, broken: run.broken.slice(0, 20) }).toEqual({ seed, broken: [] });
    expect(run.rounds).toBe(rounds);
    // Usually about half of the rounds have a repeated response.
    expect(run.replays).toBeGreaterThan(rounds / 20);
  },
  400_000,
);
