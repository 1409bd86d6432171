/**
 * The outcome of `work`, or an Error saying that `what` did not answer when it takes longer than `wait_ms`. The work itself
 * goes on. What arrived while this process was busy is read before the time is called up; and the time is counted in
 * quarters, so that a process that stood still has most of it left for what it had not sent yet.
 */
export async function within<T>(
  work: Promise<T>,
  wait_ms: number,
  what: string,
  late = (message: string): Error => new Error(message),
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let soon: ReturnType<typeof setImmediate> | undefined;
  const silence = new Promise<never>((_, reject) => {
    let quarters = 4;
    const quarter = () => {
      quarters -= 1;
      if (quarters > 0) timer = setTimeout(quarter, wait_ms / 4);
      else soon = setImmediate(() => reject(late(`${what} did not answer within ${wait_ms} ms`)));
    };
    timer = setTimeout(quarter, wait_ms / 4);
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    clearTimeout(timer);
    clearImmediate(soon);
  }
}
