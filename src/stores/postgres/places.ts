/** A few places for work of one kind: so many run at a time, and others wait, first come, first served. */
import { answeredWithin } from "./database.ts";

/** Runs work once a place is free. Throws DatabaseError `silent` if none is within this time. */
export type Places = <T>(work: () => Promise<T>, wait_ms: number) => Promise<T>;

export function placesFor(max: number, what: string): Places {
  let free = max;
  const waiting: (() => void)[] = [];
  const leave = () => {
    const next = waiting.shift();
    if (next) next();
    else free += 1;
  };
  async function taken(wait_ms: number): Promise<void> {
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    await answeredWithin(promise, wait_ms, what).catch((late) => {
      const place = waiting.indexOf(resolve);
      if (place < 0) leave();
      else waiting.splice(place, 1);
      throw late;
    });
  }
  return async (work, wait_ms) => {
    await taken(wait_ms);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
