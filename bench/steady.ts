// Sends the requests of the benches. `ask` resolves when the complete response has arrived, and throws if it is wrong.

type Ask = () => Promise<unknown>;

interface Steady {
  length_s: number;
  /** The number of requests per second. */
  rate: number;
  /** The list to which the latency of each request is added, in milliseconds. */
  latencies: number[];
  /** The most requests that may be in flight. Requests beyond that are not sent, and are counted as left out. */
  running_max?: number;
}

/**
 * Sends requests at a steady rate without waiting for earlier ones. Resolves with the number of requests that were left
 * out.
 */
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
      // Yields to the event loop, so that responses can be read.
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
  /** The number of connections, each of which always has one request in flight. */
  connections: number;
  latencies: number[];
}

/** Sends requests on each connection, one after another, until the time is over. */
export async function closely(ask: Ask, { length_s, connections, latencies }: Close): Promise<void> {
  const ends = performance.now() + length_s * 1000;
  const connection = async () => {
    while (performance.now() < ends) await timed(ask, latencies);
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** Sends this many requests, with as many in flight as there are connections. */
export async function counted(ask: Ask, { count, connections }: { count: number; connections: number }): Promise<void> {
  let left = count;
  const connection = async () => {
    while (left-- > 0) await ask();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** Sends this many requests, whose starts are spread evenly over the time. */
export async function spread(ask: Ask, { count, over_s }: { count: number; over_s: number }): Promise<void> {
  await steadily(ask, { length_s: over_s, rate: count / over_s, latencies: [] });
}

/** Reads the response of a `fetch`, whose status must be 200. */
export async function answeredWhole(asked: Promise<Response>): Promise<void> {
  const response = await asked;
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a request was answered ${response.status}: ${text.slice(0, 300)}`);
}
