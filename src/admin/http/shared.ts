/**
 * Shares the result of `look` among all callers that ask while it runs, or within `age_ms` after it. A failure is
 * shared only by those who already wait for it.
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
 * Like `shared`, but if there is an earlier result, no caller waits for a new run of `look`, nor learns that it failed.
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
