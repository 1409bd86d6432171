/**
 * Work that one poll of the sockets brings is done together when all of them were read: code that has just run for another
 * costs less. docs/decisions/2026-11-22-bodies-and-streams.md
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
