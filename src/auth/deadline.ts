/** The outcome of `work`, or an Error naming `what` when it takes longer than `wait_ms`. The work itself goes on. */
export async function within<T>(work: Promise<T>, wait_ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${wait_ms} ms`)), wait_ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
