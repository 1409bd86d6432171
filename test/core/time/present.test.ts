/**
 * The members of a `Present` set are known exactly, and members that have left are not kept in memory. Rule:
 * docs/design/runtime.md, Bun as a server.
 */
import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { Present, type PresentEntry } from "../../../src/core/time/clock.ts";

test("whoever came and has not left is there, in whatever order they leave", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const present = new Present<number>();
    const places = new Map<number, PresentEntry<number>>();
    let state = seed;
    for (let step = 0; step < 200; step++) {
      state = (state * 48_271) % 2_147_483_647;
      const leaving = state % 2 === 0 ? [...places.keys()][state % Math.max(1, places.size)] : undefined;
      if (leaving === undefined) places.set(step, present.enter(step));
      else {
        const place = places.get(leaving)!;
        present.leave(place);
        // Leaving twice is the same as leaving once.
        present.leave(place);
        places.delete(leaving);
      }
      expect(present.size).toBe(places.size);
      expect(present.members().sort((one, other) => one - other)).toEqual([...places.keys()]);
    }
  }
});

test("who has left is gone with the next quick collection", () => {
  const there_max = 64;
  const count = 3_000;
  const present = new Present<Headers>();
  const places: PresentEntry<Headers>[] = [];
  const left = () => heapStats().objectTypeCounts.Headers ?? 0;
  fullGC();
  const before = left();
  for (let at = 0; at < count; at++) {
    places.push(present.enter(new Headers()));
    if (places.length > there_max) present.leave(places.shift()!);
    if (at % 500 === 0) edenGC();
  }
  for (const place of places.splice(0)) present.leave(place);
  edenGC();
  // Entries that were present at a collection count as old, and a quick collection frees no old ones.
  const stayed = left() - before;
  expect({ stayed, isFew: stayed <= (count / 500 + 1) * (there_max + 1) }).toEqual({ stayed, isFew: true });
});
