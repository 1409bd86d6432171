// The driver of the benches that measure a request.

interface Steady {
  length_s: number;
  /** Requests a second. */
  rate: number;
  /** Takes the milliseconds of each request. */
  latencies: number[];
}

/** Requests at a steady rate, whatever becomes of the ones before. */
export async function steadily(ask: () => Promise<Response>, { length_s, rate, latencies }: Steady): Promise<void> {
  const pending: Promise<void>[] = [];
  const started = performance.now();
  for (let count = 0; count < length_s * rate; count++) {
    const due = started + (count * 1000) / rate;
    const wait = due - performance.now();
    if (wait > 1) await Bun.sleep(wait);
    const sent = performance.now();
    pending.push(
      ask().then(async (response) => {
        await response.text();
        if (response.status !== 200) throw new Error(`a request was answered ${response.status}`);
        latencies.push(performance.now() - sent);
      }),
    );
  }
  await Promise.all(pending);
}

interface Close {
  length_s: number;
  /** Each has one request under way at any time. */
  connections: number;
  latencies: number[];
}

/** As many requests as are answered: each connection asks again when it has its answer. */
export async function closely(
  ask: () => Promise<Response>,
  { length_s, connections, latencies }: Close,
): Promise<void> {
  const ends = performance.now() + length_s * 1000;
  const connection = async () => {
    while (performance.now() < ends) {
      const sent = performance.now();
      const response = await ask();
      await response.text();
      if (response.status !== 200) throw new Error(`a request was answered ${response.status}`);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
}
