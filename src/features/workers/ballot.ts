/**
 * The vote over a reload: each worker has read the new configuration and sends its objections; either all apply it or
 * none does. A worker that does not vote in time is not waited for; it does not apply the configuration, and says so in
 * its log.
 */

export type Ballot = ReturnType<typeof ballot>;

/** Begins a vote. `counted`: called once, with all objections. */
export function ballot(voters: Iterable<number>, wait_ms: number, counted: (problems: string[]) => void) {
  const open = new Set(voters);
  const problems = new Set<string>();
  let isCounted = false;
  const count = () => {
    if (isCounted) return;
    isCounted = true;
    clearTimeout(timer);
    counted([...problems]);
  };
  const timer = setTimeout(() => {
    problems.add(`no word from worker ${[...open].join(", ")} within ${wait_ms / 1000} s; reload again`);
    count();
  }, wait_ms);
  const close = (worker: number) => {
    open.delete(worker);
    if (open.size === 0) count();
  };
  return {
    vote(worker: number, said: readonly string[]): void {
      if (!open.has(worker)) return;
      for (const problem of said) problems.add(problem);
      close(worker);
    },
    /** Removes a worker that has ended. Its replacement reads the configuration that is then in force. */
    leave: close,
  };
}
