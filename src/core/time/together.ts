/**
 * Runs the work that one poll brings together, in a turn of its own, once all of it has arrived. For sockets, because
 * code that has just run costs less the next time (docs/decisions/2026-11-22-bodies-and-streams.md); for messages of a
 * thread, see there.
 */
export type Together = (work: () => void) => void;

/** `work` never throws, and runs in the order in which it came. */
export function together(): Together {
  let due: (() => void)[] = [];
  const run = () => {
    const works = due;
    due = [];
    for (const work of works) work();
  };
  return (work) => {
    due.push(work);
    if (due.length === 1) setImmediate(run);
  };
}
