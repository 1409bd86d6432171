/**
 * Runs the work that a poll brings once all of it has arrived, in order of urgency: what is urgent comes
 * before all that flows, and what flows comes in portions, so that a busy process looks for something urgent in between.
 */
export interface Turns {
  /** `work` never throws. Work of the same urgency runs in the order in which it came. */
  soon(work: () => void, isUrgent: boolean): void;
}

/** At some 30 µs for each, a portion holds up what is urgent for a millisecond. */
const portion_default = 32;

export function turns(portion = portion_default): Turns {
  let urgent: (() => void)[] = [];
  const flowing: (() => void)[] = [];
  let isDue = false;
  let wasUrgent = false;

  function run(): void {
    const works = urgent;
    urgent = [];
    // Urgent work has a turn of its own, in which what it sets off is done too. What flows has every second turn at least.
    wasUrgent = works.length > 0 && !wasUrgent;
    if (!wasUrgent) for (const work of flowing.splice(0, portion)) works.push(work);
    isDue = flowing.length > 0;
    if (isDue) setImmediate(run);
    for (const work of works) work();
  }

  return {
    soon(work, isUrgent) {
      if (isUrgent) urgent.push(work);
      else flowing.push(work);
      if (isDue) return;
      isDue = true;
      setImmediate(run);
    },
  };
}

/** The same for work that is all of one urgency. */
export type Together = (work: () => void) => void;

/**
 * Runs the work that one poll brings together, in a turn of its own. For sockets, because code that has just run costs less the
 * next time (docs/decisions/2026-11-22-bodies-and-streams.md); for messages of a thread, see there.
 */
export function together(): Together {
  const { soon } = turns();
  return (work) => soon(work, true);
}
