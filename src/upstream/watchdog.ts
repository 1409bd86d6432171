/** One timer for all waits of a request: moving the deadline later costs an assignment, not a new timer. */
export function watchdog(bark: (waitedFor: string) => void) {
  let deadline = Number.POSITIVE_INFINITY;
  let what = "";
  let last = Number.POSITIVE_INFINITY;
  let lastWhat = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  let fires = Number.POSITIVE_INFINITY;

  function arm() {
    const due = Math.min(deadline, last);
    if (due >= fires) return;
    clearTimeout(timer);
    fires = due;
    timer = setTimeout(check, Math.max(0, due - performance.now()));
  }

  function check() {
    fires = Number.POSITIVE_INFINITY;
    const now = performance.now();
    if (now >= last) bark(lastWhat);
    else if (now >= deadline) bark(what);
    else arm();
  }

  return {
    /** The next thing must come within `ms` from now. */
    expect(ms: number, waitingFor: string) {
      deadline = performance.now() + ms;
      what = waitingFor;
      arm();
    },
    /** All of it must be over within `ms` from now; watched from when something is expected: one timer, not two. */
    limit(ms: number, waitingFor: string) {
      last = performance.now() + ms;
      lastWhat = waitingFor;
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
