/**
 * Shares one result of `look` among all callers that ask while `look` runs, or within `age_ms` after it has finished. A
 * failure reaches only the callers that are already waiting for it.
 */
export function shared<T>(look: () => Promise<T>, age_ms: number, now_ms: () => number): () => Promise<T> {
  let last: { result: Promise<T>; until_ms: number } | null = null;
  return () => {
    if (last && now_ms() < last.until_ms) return last.result;
    const one = { result: look(), until_ms: Number.POSITIVE_INFINITY };
    last = one;
    one.result.then(
      () => {
        one.until_ms = now_ms() + age_ms;
      },
      () => {
        if (last === one) last = null;
      },
    );
    return one.result;
  };
}

/**
 * Like `shared`, but once there is a result, callers get the latest result without waiting for the new run of `look`
 * that they start, and failures of later runs are ignored.
 */
export function latest<T>(look: () => Promise<T>, age_ms: number, now_ms: () => number): () => Promise<T> {
  const ask = shared(look, age_ms, now_ms);
  let known: { value: T } | null = null;
  return async () => {
    const asked = ask().then((value) => {
      known = { value };
      return value;
    });
    if (known === null) return asked;
    asked.catch(() => {});
    return (known as { value: T }).value;
  };
}
