/** Limits how many pieces of work of one kind run at a time. Others wait for a free slot, first come, first served. */
import { answeredWithin } from "./database.ts";

/** Runs work once a slot is free. Throws DatabaseError `silent` if no slot becomes free within this time. */
type Places = <T>(work: () => Promise<T>, wait_ms: number) => Promise<T>;

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
