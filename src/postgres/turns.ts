/**
 * The embedded database works on this thread, and its answers come without a turn of the event loop between them: a few
 * hundred statements in a row would hold up every connection and every probe. So they go one after the other, and others
 * get their turn before the next one begins.
 */

/** So long statements may follow each other. A small one takes one or two milliseconds. */
const stretch_ms = 5;

type Do = <T>(work: () => Promise<T>) => Promise<T>;

export function oneAfterTheOther(now_ms: () => number): Do {
  let last: Promise<unknown> = Promise.resolve();
  let rested_ms = now_ms();
  return (work) => {
    const mine = last.then(async () => {
      if (now_ms() - rested_ms >= stretch_ms) {
        await new Promise((resolve) => setImmediate(resolve));
        rested_ms = now_ms();
      }
      return work();
    });
    last = mine.catch(() => {});
    return mine;
  };
}
