/**
 * Work that one poll brings is done together when all of it has come, in a turn of its own: of sockets, because code that has
 * just run for another costs less (docs/decisions/2026-11-22-bodies-and-streams.md); of messages from a thread, see there.
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
