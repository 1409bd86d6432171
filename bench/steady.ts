// The driver of the benches that measure a request. `ask` resolves when its answer is there, whole, and throws where it is
// wrong.

type Ask = () => Promise<unknown>;

interface Steady {
  length_s: number;
  /** Requests a second. */
  rate: number;
  /** Takes the milliseconds of each request. */
  latencies: number[];
  /** Requests that may be under way; further ones are left out, and counted. */
  running_max?: number;
}

/** Requests at a steady rate, whatever becomes of the ones before. Resolves with how many were left out. */
export async function steadily(ask: Ask, { length_s, rate, latencies, running_max }: Steady): Promise<number> {
  const pending: Promise<void>[] = [];
  const started = performance.now();
  let running = 0;
  let leftOut = 0;
  const failures: unknown[] = [];
  for (let count = 0; count < length_s * rate && failures.length === 0; count++) {
    const due = started + (count * 1000) / rate;
    const wait = due - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    if (running >= (running_max ?? Number.POSITIVE_INFINITY)) {
      leftOut += 1;
      // What is to be answered must get its turn.
      if (leftOut % 64 === 0) await Bun.sleep(0);
      continue;
    }
    running += 1;
    const asked = timed(ask, latencies).catch((failure: unknown) => void failures.push(failure));
    const over = asked.then(() => {
      running -= 1;
    });
    pending.push(over);
  }
  await Promise.all(pending);
  if (failures.length > 0) throw failures[0];
  return leftOut;
}

async function timed(ask: Ask, latencies: number[]): Promise<void> {
  const sent = performance.now();
  await ask();
  latencies.push(performance.now() - sent);
}

interface Close {
  length_s: number;
  /** Each has one request under way at any time. */
  connections: number;
  latencies: number[];
}

/** As many requests as are answered: each connection asks again when it has its answer. */
export async function closely(ask: Ask, { length_s, connections, latencies }: Close): Promise<void> {
  const ends = performance.now() + length_s * 1000;
  const connection = async () => {
    while (performance.now() < ends) await timed(ask, latencies);
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** So many requests, as many at once as there are connections. */
export async function counted(ask: Ask, { count, connections }: { count: number; connections: number }): Promise<void> {
  let left = count;
  const connection = async () => {
    while (left-- > 0) await ask();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** Each asks once, and they begin evenly over that time. */
export async function spread(ask: Ask, { count, over_s }: { count: number; over_s: number }): Promise<void> {
  await steadily(ask, { length_s: over_s, rate: count / over_s, latencies: [] });
}

/** Reads an answer of `fetch`, which must be a 200. */
export async function answeredWhole(asked: Promise<Response>): Promise<void> {
  const response = await asked;
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a request was answered ${response.status}: ${text.slice(0, 300)}`);
}
